"""What keeps a pod from being started.

KubeletError
├── MissingInput    a ConfigMap, Secret or key that is not there (yet): the pod waits
└── Unsupported     something that this node cannot honour: the pod fails
"""


class KubeletError(Exception):
    pass


class MissingInput(KubeletError):
    pass


class Unsupported(KubeletError):
    pass
