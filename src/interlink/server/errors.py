"""What can go wrong in the server itself.

ServerError
└── StoreUnavailable   nothing could be written; nothing has been promised; repeat later
"""


class ServerError(Exception):
    pass


class StoreUnavailable(ServerError):
    pass
