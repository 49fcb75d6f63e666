package convert_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
)

// Import a checkpoint folder into a store. The digest is the same on every machine.
func ExampleCreate() {
	dir, err := os.MkdirTemp("", "models")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	models, err := store.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	name, err := manifest.ParseName("demo")
	if err != nil {
		log.Fatal(err)
	}
	file, err := modelfile.Parse("Modelfile", []byte("FROM ../testdata/models/demo\nPARAMETER temperature 0.5"))
	if err != nil {
		log.Fatal(err)
	}
	made, err := convert.Create(context.Background(), models, name, file, convert.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(made.Name, made.Tensors, "tensors")
	fmt.Println(made.Digest)
	// Output:
	// demo:latest 47 tensors
	// sha256:27b3b88c12146242aaf7a672ea9a2244fc66ce8c4c6c5d9c3d7937d05f682f96
}

// Quantize while importing: weights get 4 bits, and those that the architecture's precision rules name get more.
func ExampleCreate_quantize() {
	dir, err := os.MkdirTemp("", "models")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	models, err := store.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	name, err := manifest.ParseName("demo:int4")
	if err != nil {
		log.Fatal(err)
	}
	file, err := modelfile.Parse("Modelfile", []byte("FROM ../testdata/models/demo"))
	if err != nil {
		log.Fatal(err)
	}
	made, err := convert.Create(context.Background(), models, name, file, convert.Options{
		Precision: recipe.Precision{Type: quantize.Int4},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %.1f MB\n", made.Name, float64(made.Bytes)/1e6)
	// Output:
	// demo:int4: 1.4 MB
}
