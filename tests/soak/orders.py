"""What does the commands of a soak, on SQLAlchemy's connection or Django's."""

import time

from sqlalchemy import Connection, text


def order(event, tx):
    """Order, and have that in hand for as long as the client says."""
    number = event.data["number"]
    if isinstance(tx, Connection):
        tx.execute(text("INSERT INTO ordered VALUES (:number)"), {"number": number})
    else:
        with tx.cursor() as cursor:
            cursor.execute("INSERT INTO ordered VALUES (%s)", [number])
    time.sleep(event.data["hold"])
    return {"ordered": number}
