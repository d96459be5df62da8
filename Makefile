.PHONY: build test lint check

build: ## ./memdiag, without cgo
	CGO_ENABLED=0 go build -trimpath -o memdiag ./cmd/memdiag

test:
	go test ./...

lint:
	golangci-lint run ./...

check: ## what CI runs
	.ci/run
