# The server in a container: dependencies exactly as locked, an ordinary user, no build tools left in it.
# To pin it by digest: --build-arg PYTHON_IMAGE=python:3.13-slim@sha256:… (see docs/operating.md).
ARG PYTHON_IMAGE=python:3.13-slim
FROM ${PYTHON_IMAGE} AS build
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never
# To compile the engine while the wheel is built.
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
RUN pip install --no-cache-dir uv==0.13.8
WORKDIR /app
COPY pyproject.toml uv.lock README.md LICENSE ./
COPY clients/python/pyproject.toml clients/python/pyproject.toml
RUN uv sync --locked --no-dev --extra embedded --no-install-workspace
COPY hatch_build.py CHANGELOG.md SECURITY.md ./
COPY bench/RESULTS.md bench/RESULTS.md
COPY openapi/openapi.json openapi/openapi.json
COPY examples examples
COPY docs docs
COPY tools tools
COPY clients/python clients/python
COPY service service
COPY migrations migrations
# An image whose engine is not compiled would serve, and be slower.
RUN uv sync --locked --no-dev --extra embedded --no-editable && .venv/bin/moorage --version | grep -w compiled

FROM ${PYTHON_IMAGE}
# PostgreSQL, when it is the embedded one, insists on a user with a name.
RUN useradd --system --create-home --uid 10001 moorage \
 && install -d -o moorage -g moorage -m 700 /var/lib/moorage
COPY --from=build /app/.venv /app/.venv
ENV PATH=/app/.venv/bin:$PATH \
    MOORAGE_HOST=0.0.0.0 \
    MOORAGE_HEALTH_PORT=8081 \
    MOORAGE_DATA_DIR=/var/lib/moorage/data
USER moorage
WORKDIR /var/lib/moorage
VOLUME /var/lib/moorage
EXPOSE 8080 8081
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["moorage", "status", "--url", "http://127.0.0.1:8081"]
ENTRYPOINT ["moorage"]
# It listens on all addresses of the container, so it starts only with a token, -e MOORAGE_TOKEN=… (32 characters or more), and with TLS: a certificate,
# or -e MOORAGE_TLS_TERMINATED=true where a proxy in front speaks it.
CMD ["serve"]
