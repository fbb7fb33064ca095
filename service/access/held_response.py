"""Responses that are held back, to be replaced when their body is there."""

from collections.abc import Awaitable, Callable

from starlette.types import Message, Send


def held_back(
    send: Send,
    is_held: Callable[[Message], bool],
    replace: Callable[[Message, bytes], Awaitable[None]],
) -> Send:
    """Return how to send a response: if ``is_held`` tells so of its head, ``replace`` sends it.

    ``replace`` gets the head and the whole body.
    """
    head: Message | None = None
    body = bytearray()

    async def send_part(message: Message) -> None:
        nonlocal head
        if message["type"] == "http.response.start" and is_held(message):
            head = message
        elif head is None:
            await send(message)
        else:
            body.extend(message.get("body", b""))
            if not message.get("more_body", False):
                await replace(head, bytes(body))

    return send_part
