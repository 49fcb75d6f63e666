// Package bridge holds the C++ sources of the library between ingot and MLX, and the list of its operations.
//
// The sources are embedded, so that a program without a checkout can compile them on the user's machine (package
// mlx/engine does); package mlx loads the result. src/bridge.h is the whole interface, ops.txt the one list of operations.
package bridge

import (
	"embed"
	"io/fs"
)

//go:embed src/*.cc src/*.h
var sources embed.FS

// Sources is a flat folder: *.cc are translation units, *.h are included by them. (They lie in a folder of their own,
// since the go command refuses C++ files beside Go files that use no cgo.)
func Sources() fs.FS {
	sub, err := fs.Sub(sources, "src")
	if err != nil {
		panic(err) // the name is a constant
	}
	return sub
}
