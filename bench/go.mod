module github.com/ingotml/ingot/bench

go 1.26.0

toolchain go1.26.11

replace github.com/ingotml/ingot => ../

require (
	github.com/ingotml/ingot v0.0.0
	golang.org/x/sys v0.49.0
)

require (
	github.com/dlclark/regexp2/v2 v2.12.0 // indirect
	github.com/gofrs/flock v0.13.1 // indirect
	github.com/klauspost/cpuid/v2 v2.0.12 // indirect
	github.com/modelpack/model-spec v0.0.7 // indirect
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/opencontainers/image-spec v1.1.1 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	github.com/zeebo/blake3 v0.2.4 // indirect
	golang.org/x/image v0.47.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)
