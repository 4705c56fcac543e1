"""Generators of random cases, one module for each field of the rules.

A case is a cluster and an incoming pod, in the format of conformance vectors without `expect`. It
depends on its family, a seed, and its number alone, and is valid for kube-apiserver. Objects are
what a scheduler sees, so defaults of requests are filled in and label keys merged.
"""
