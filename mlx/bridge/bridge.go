// Package bridge holds the C++ sources of the library between ingot and MLX, and the list of its operations.
//
// The sources are embedded, so that package mlx/engine can compile them on a machine without a checkout. Package mlx
// loads the result. src/core/bridge.h is the whole interface; ops.txt is the only list of operations.
package bridge

import (
	"embed"
	"io/fs"
)

//go:embed src
var sources embed.FS

// Sources returns the tree of sources: *.cc files and the *.h files that they include by their path from the root.
// core/ is the interface, ops/ the operations on graphs, group/ those between ranks, cpu/ the kernels of the CPU. They
// are in a folder of their own because the go command rejects C++ files next to Go files that do not use cgo.
func Sources() fs.FS {
	sub, err := fs.Sub(sources, "src")
	if err != nil {
		panic(err) // cannot happen: the name is a constant
	}
	return sub
}
