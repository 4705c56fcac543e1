"""The smallest change that makes an unschedulable pod fit."""
