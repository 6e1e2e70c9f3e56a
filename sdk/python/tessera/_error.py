"""The exception of the package."""


class Error(RuntimeError):
    """What tessera refuses or could not do. Its text has the values that broke the rule, and often a cure.

    code        the name of the rule, such as "shape_mismatch"; docs/errors has a page for each
    cuda_error  the number of CUDA's error, 0 if CUDA was not what failed
    """

    __module__ = "tessera"

    def __init__(self, text: str, code: str = "unknown_failure", cuda_error: int = 0):
        super().__init__(text)
        self.code = code
        self.cuda_error = cuda_error

    def __reduce__(self):
        return type(self), (self.args[0], self.code, self.cuda_error)


class CommunicationError(Error):
    """Several GPUs could not exchange data: another rank failed or is late, or NCCL is missing or failed.

    Its code is "communication_failed", and its text names the rank, if that is known. The communicator is of no use then, on any rank.
    """

    __module__ = "tessera"
