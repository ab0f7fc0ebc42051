"""The inbox inside a FastAPI application, or any that is made with Starlette (docs/how-to/fastapi.md).

import hookonce.fastapi

app = FastAPI()
hookonce.fastapi.mount(app)    # POST /hooks/<source>
"""

from hookonce.receiver.web.asgi import AsgiEndpoint
from hookonce.receiver.web.mounted import guest

try:
    from starlette.applications import Starlette
except ImportError:
    raise ImportError("hookonce.fastapi needs FastAPI: pip install 'hookonce[fastapi]'") from None


def mount(app: Starlette, at: str = "/hooks/") -> None:
    """Have an application receive webhooks: what begins with `at` is answered by hookonce.

    Reads hookonce.toml and the environment, and raises `ConfigError` with every mistake there. Connections are opened
    with the first delivery, so after any fork. Where no server is named, as in tests, deliveries get 503.
    """
    app.mount(at.rstrip("/"), AsgiEndpoint(guest(at), at))
