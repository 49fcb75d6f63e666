// Command opgen generates the C++ table of operations and the Go functions that call them from mlx/bridge/ops.txt.
//
// `go generate ./mlx` runs it. A test fails if its output is stale.
package main

import (
	"log"
	"os"
	"path/filepath"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("opgen: ")
	dir := "." // go generate runs in the folder of package mlx
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	files, err := generate(dir)
	if err != nil {
		log.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
