.PHONY: build test lint check torch wheel

build: ## ./memdiag, without cgo
	CGO_ENABLED=0 go build -trimpath -o memdiag ./cmd/memdiag

test:
	go test ./...

lint:
	golangci-lint run ./...

check: ## what CI runs
	.ci/run

torch: ## PyTorch for the tests of memdiag record, 5.5 GB in the user's cache
	.ci/run torch

wheel: ## the wheels for all platforms, in dist/
	go run ./release wheels
