"""Why a fact holds, why not, and why that has changed; nothing of it is recorded by commits."""
