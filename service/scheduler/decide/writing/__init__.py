"""Decides requests that write objects, bind or evict a pod, or change the configuration."""
