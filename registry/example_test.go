package registry_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	oci "github.com/google/go-containerregistry/pkg/registry"
	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/registry"
)

// Push an image to a registry. Docker's credentials are used; an interrupted push resumes when it is run again.
func ExampleClient_Push() {
	dir, err := os.MkdirTemp("", "models")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	models, local := demo(dir)

	// In place of ghcr.io: a registry of this process.
	server := httptest.NewServer(oci.New(oci.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	remote, err := manifest.ParseName(strings.TrimPrefix(server.URL, "http://") + "/me/demo:v1")
	if err != nil {
		log.Fatal(err)
	}

	client, err := registry.New(registry.Options{})
	if err != nil {
		log.Fatal(err)
	}
	digest, err := client.Push(context.Background(), models, local, remote, registry.PushOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(remote.Path, remote.Tag, digest)
	// Output:
	// me/demo v1 sha256:e533aa79319703c32e4da7fbb5fc2ba2df5d13278d4007c95acfc0513866aafb
}

// Pull an image into a store. Every blob is verified, and blobs that the store has are not fetched again.
func ExampleClient_Pull() {
	dir, err := os.MkdirTemp("", "models")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	remote, end := published(filepath.Join(dir, "theirs"))
	defer end()

	models, err := store.Open(filepath.Join(dir, "ours"))
	if err != nil {
		log.Fatal(err)
	}
	client, err := registry.New(registry.Options{})
	if err != nil {
		log.Fatal(err)
	}
	pulled, err := client.Pull(context.Background(), models, remote, registry.PullOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %.1f MB\n", pulled.Name.Path, float64(pulled.Bytes)/1e6)
	// Output:
	// me/demo: 3.7 MB
}

// demo imports a small model into a store in a folder.
func demo(dir string) (*store.Store, manifest.Name) {
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
	if _, err := convert.Create(context.Background(), models, name, file, convert.Options{}); err != nil {
		log.Fatal(err)
	}
	return models, name
}

// published pushes the small model to a registry of this process, until end is called.
func published(dir string) (remote manifest.Name, end func()) {
	models, local := demo(dir)
	server := httptest.NewServer(oci.New(oci.Logger(log.New(io.Discard, "", 0))))
	remote, err := manifest.ParseName(strings.TrimPrefix(server.URL, "http://") + "/me/demo:v1")
	if err != nil {
		log.Fatal(err)
	}
	client, err := registry.New(registry.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.Push(context.Background(), models, local, remote, registry.PushOptions{}); err != nil {
		log.Fatal(err)
	}
	return remote, server.Close
}
