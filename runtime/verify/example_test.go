package verify_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/runtime/verify"
)

// Check that an image is intact: the digests of all blobs, and every tensor's name, shape and type.
func ExampleImage() {
	dir, err := os.MkdirTemp("", "models")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	models, name := demo(ctx, dir)

	image, err := models.Resolve(ctx, name)
	if err != nil {
		log.Fatal(err)
	}
	stats, err := verify.Image(ctx, models, image)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stats.Tensors, "tensors are as the architecture demands")

	// A damaged blob does not pass.
	tensor := image.Image.Layers[len(image.Image.Layers)-1]
	if err := os.WriteFile(models.BlobPath(tensor.Digest), make([]byte, tensor.Size), 0o644); err != nil {
		log.Fatal(err)
	}
	if _, err := verify.Image(ctx, models, image); err != nil {
		fmt.Println("a damaged blob is an error")
	}
	// Output:
	// 47 tensors are as the architecture demands
	// a damaged blob is an error
}

// demo imports a small model into a store in a folder.
func demo(ctx context.Context, dir string) (*store.Store, manifest.Name) {
	models, err := store.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	name, err := manifest.ParseName("demo")
	if err != nil {
		log.Fatal(err)
	}
	file, err := modelfile.Parse("Modelfile", []byte("FROM ../../testdata/models/demo"))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := convert.Create(ctx, models, name, file, convert.Options{}); err != nil {
		log.Fatal(err)
	}
	return models, name
}
