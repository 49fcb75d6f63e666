package runtime_test

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"testing"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/engine"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/batch"
)

// An example cannot skip itself: without an engine, this says so and leaves it out, unless make test demands engines.
func TestMain(m *testing.M) {
	flag.Parse()
	_, err := engine.Find(engine.Options{})
	if err == nil {
		err = mlx.Available()
	}
	if err != nil && !runtest.Engine.On() {
		fmt.Println("SKIP: ExampleEngine:", err)
		if err := flag.Set("test.skip", "^ExampleEngine$"); err != nil {
			log.Fatal(err)
		}
	}
	os.Exit(m.Run())
}

// Load an image and generate text with it. engine.Install installs the MLX engine if there is none.
func ExampleEngine() {
	dir, err := os.MkdirTemp("", "models")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	models, image := demo(ctx, dir)

	installed, err := engine.Find(engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	thread, err := mlx.Open(installed, mlx.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer thread.Close()
	model, err := batch.Open(ctx, thread, models, image, runtime.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()

	prompt, err := model.Processor().Encode(ctx, "Once upon a time")
	if err != nil {
		log.Fatal(err)
	}
	for event, err := range model.Generate(ctx, runtime.Request{Prompt: prompt, MaxTokens: 12}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(event.Text)
	}
	fmt.Println()
	// Output:
	// there was a curious girl called Oskar,
}

// demo imports a small model into a store in a folder.
func demo(ctx context.Context, dir string) (*store.Store, *store.Entry) {
	models, err := store.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	name, err := manifest.ParseName("demo")
	if err != nil {
		log.Fatal(err)
	}
	file, err := modelfile.Parse("Modelfile", []byte("FROM ../testdata/models/demo"))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := convert.Create(ctx, models, name, file, convert.Options{}); err != nil {
		log.Fatal(err)
	}
	image, err := models.Resolve(ctx, name)
	if err != nil {
		log.Fatal(err)
	}
	return models, image
}
