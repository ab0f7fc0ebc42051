"""A shop: `uvicorn app:app`."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from models import Payment
from sqlalchemy.ext.asyncio import create_async_engine
from sqlmodel import SQLModel, func, select
from sqlmodel.ext.asyncio.session import AsyncSession

import hookonce.fastapi  # hookonce

DATABASE_URL = os.environ.get("DATABASE_URL", "postgresql:///shop")
engine = create_async_engine(DATABASE_URL.replace("postgresql:", "postgresql+psycopg:", 1))


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    """Make the tables at the start."""
    async with engine.begin() as connection:
        await connection.run_sync(SQLModel.metadata.create_all)
    yield
    await engine.dispose()


app = FastAPI(lifespan=lifespan)
hookonce.fastapi.mount(app)  # hookonce


@app.get("/")
async def income() -> dict[str, int]:
    """Tell what came in."""
    async with AsyncSession(engine) as session:
        return {"cents": int((await session.exec(select(func.sum(Payment.cents)))).one() or 0)}
