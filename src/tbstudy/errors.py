"""The two kinds of trouble, kept apart everywhere.

A `StudyError` is for the person who runs the study: bad input, with what is wrong, where, and what to do.
A `SystemFault` is an infrastructure failure during an attempt (tool server, user, judge, endpoint): the attempt
has no verdict, it is not a failed attempt.
"""


class StudyError(Exception):
    """Bad input or an impossible request; the message names the place and the remedy."""


class SystemFault(Exception):
    """An attempt could not be completed for reasons outside the policy.

    `cause` is one of backend, user, judge, policy, check.
    """

    def __init__(self, cause: str, message: str):
        super().__init__(message)
        self.cause = cause

    def __reduce__(self) -> tuple:
        # Exceptions come out of a pickle by their message alone, and some of these put words before it.
        return _unpickled, (type(self), self.cause, str(self))


def _unpickled(kind: type[SystemFault], cause: str, message: str) -> SystemFault:
    fault = kind.__new__(kind, message)
    fault.cause = cause
    return fault
