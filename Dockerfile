# The receiver, the worker and the command line in one image; the command says which.
#   docker build -t hookonce . && docker run hookonce worker

FROM python:3.11-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/hookonce
ENV PATH=/opt/hookonce/bin:$PATH
WORKDIR /src
COPY requirements-run.lock ./
RUN pip install --require-hashes --requirement requirements-run.lock
COPY pyproject.toml README.md LICENSE ./
COPY .ci/readme_for_pypi.py .ci/packaged_docs.py ./.ci/
COPY compose.yaml ./
COPY deploy ./deploy
COPY docs ./docs
COPY hookonce ./hookonce
COPY jobs ./jobs
COPY providers ./providers
COPY receiver ./receiver
RUN pip install --no-deps --no-build-isolation . \
 && pip uninstall --yes hatchling

FROM python:3.11-slim
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin hookonce
COPY --from=build /opt/hookonce /opt/hookonce
# Handlers and hookonce.toml come here, by a mount or an image built on this one.
WORKDIR /app
ENV PATH=/opt/hookonce/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PORT=8000
USER hookonce
EXPOSE 8000
# Of the receiver; switch it off for a worker (`--no-healthcheck`, or `healthcheck: {disable: true}`).
HEALTHCHECK --interval=10s --timeout=3s --start-period=15s --retries=3 \
  CMD ["python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ['PORT'] + '/livez', timeout=2)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["hookonce"]
CMD ["serve"]
