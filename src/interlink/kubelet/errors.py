"""What keeps a pod from being started.

KubeletError
├── MissingInput    a ConfigMap, Secret or key that is not there (yet): the pod waits
├── Unsupported     something that this node cannot honour: the pod fails
└── Waits           the pod could not be brought further, and its state says why: try again
"""


class KubeletError(Exception):
    pass


class MissingInput(KubeletError):
    pass


class Unsupported(KubeletError):
    pass


class Waits(KubeletError):
    pass
