"""The inbox inside a Flask application (docs/how-to/flask.md).

import hookonce.flask

app = Flask(__name__)
hookonce.flask.mount(app)    # POST /hooks/<source>

Handlers run in `flask hookonce worker`, inside the application's context, with `db.session` of Flask-SQLAlchemy in the
transaction of the run; or in `hookonce worker`, without the application.

- `mount`: receives webhooks in front of the application
- `cli`: `flask hookonce …`
- `transactions`: what handlers write in
- `testing`: the application in tests of `hookonce.testing`
"""

from hookonce.flask.mount import mount as mount
