"""The kinds of objects that the server keeps for its rules, in the order of its own table.

`make client` writes this module.
"""

DECLARED_KINDS: tuple[tuple[str, str, bool, tuple[str, ...]], ...] = (
    ("Service", "services", True, ("svc",)),
    ("ReplicationController", "replicationcontrollers", True, ("rc",)),
    ("ReplicaSet", "replicasets", True, ("rs",)),
    ("StatefulSet", "statefulsets", True, ("sts",)),
    ("PodDisruptionBudget", "poddisruptionbudgets", True, ("pdb",)),
    ("PersistentVolumeClaim", "persistentvolumeclaims", True, ("pvc",)),
    ("PersistentVolume", "persistentvolumes", False, ("pv",)),
    ("StorageClass", "storageclasses", False, ("sc",)),
    ("CSINode", "csinodes", False, ()),
    ("CSIDriver", "csidrivers", False, ()),
    ("CSIStorageCapacity", "csistoragecapacities", True, ()),
    ("VolumeAttachment", "volumeattachments", False, ()),
    ("DeviceClass", "deviceclasses", False, ()),
    ("ResourceSlice", "resourceslices", False, ()),
    ("ResourceClaim", "resourceclaims", True, ()),
    ("ResourceClaimTemplate", "resourceclaimtemplates", True, ()),
    ("RuntimeClass", "runtimeclasses", False, ()),
    ("LimitRange", "limitranges", True, ("limits",)),
    ("Workload", "workloads", True, ()),
    ("DataSet", "datasets", True, ()),
    ("Plan", "plans", False, ()),
)
"""Of each kind its name, its plural, whether it has namespaces, and its short names."""
