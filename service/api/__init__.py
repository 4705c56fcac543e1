"""HTTP: requests to intents, decisions to answers and problem documents, and the OpenAPI document."""
