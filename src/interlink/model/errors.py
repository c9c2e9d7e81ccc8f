"""What can be wrong with input, before anything is done.

ModelError
├── InvalidID          a pod UID, node or cluster name that cannot be used
├── InvalidQuantity    "500x"
├── InvalidPod         a manifest we cannot run
├── ConfigurationError a key of a configuration file
├── DamagedRecord      a cache record that cannot be trusted
└── NewerFormat        a cache record of a newer version of this program
"""


class ModelError(Exception):
    """The text says what is wrong, where, and what to do next."""


class InvalidID(ModelError):
    pass


class InvalidQuantity(ModelError):
    pass


class InvalidPod(ModelError):
    pass


class ConfigurationError(ModelError):
    pass


class DamagedRecord(ModelError):
    pass


class NewerFormat(ModelError):
    pass
