"""Log lines: all of this process through one handler, for people or for machines."""

import logging
import os

import structlog

OURS = "service"
HANDLER = "howsure"
STDERR = 2
# It warns of every malformed upload, which the caller is told of already.
QUIET = {"python_multipart": logging.ERROR}


def configure_logging(log_format: str, *, level: int = logging.INFO) -> None:
    """Write log lines to standard error: ours of at least this level, libraries' warnings.

    Structlog's events, and what libraries say through `logging` and `warnings`, take the same way:
    one JSON object a line where ``log_format`` is ``json``.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    # The descriptor, not `sys.stderr`: that may be replaced, and closed, by whoever runs us.
    handler = logging.StreamHandler(os.fdopen(STDERR, "w", closefd=False))
    handler.name = HANDLER
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.PositionalArgumentsFormatter()],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderers(log_format),
            ],
        )
    )
    root = logging.getLogger()
    for known in [found for found in root.handlers if found.name == HANDLER]:
        root.removeHandler(known)
    root.addHandler(handler)
    logging.getLogger(OURS).setLevel(level)
    for name, least in QUIET.items():
        logging.getLogger(name).setLevel(least)
    logging.captureWarnings(capture=True)


def _renderers(log_format: str) -> list[structlog.typing.Processor]:
    if log_format == "json":
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    # Not the default one, which shows the values of variables: rows of users, keys of stores.
    formatter = structlog.dev.plain_traceback
    return [structlog.dev.ConsoleRenderer(colors=os.isatty(STDERR), exception_formatter=formatter)]
