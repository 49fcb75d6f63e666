package attest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/registry/attest"
	"github.com/ingotml/ingot/registry/signed"
	"github.com/ingotml/ingot/registry/sigstore"
)

// Sign an image in a store, and check its signature. A push takes the signature along; cosign verifies it, too.
func ExampleSign() {
	dir, err := os.MkdirTemp("", "models")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	models, name := demo(ctx, dir, "ghcr.io/me/demo:v1")

	file, err := os.ReadFile("../sigstore/testdata/cosign-ed25519.key")
	if err != nil {
		log.Fatal(err)
	}
	key, err := sigstore.ReadPrivateKey(file, nil)
	if err != nil {
		log.Fatal(err)
	}
	image, err := models.ResolveRaw(ctx, name)
	if err != nil {
		log.Fatal(err)
	}
	signature, err := attest.Sign(key, image.Descriptor, signed.Reference(name))
	if err != nil {
		log.Fatal(err)
	}
	if err := signature.Store(ctx, models); err != nil {
		log.Fatal(err)
	}

	check := attest.SignatureCheck{Key: key.Public(), Name: name}
	found, err := attest.StoredSignature(ctx, models, image.Descriptor.Digest, check)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("signed as", found.Reference)

	check.Name.Path = "me/another"
	_, err = attest.StoredSignature(ctx, models, image.Descriptor.Digest, check)
	fmt.Println("of another name:", errors.Is(err, signed.ErrOtherReference))
	// Output:
	// signed as ghcr.io/me/demo:v1
	// of another name: true
}

// demo imports a small model into a store in a folder.
func demo(ctx context.Context, dir, as string) (*store.Store, manifest.Name) {
	models, err := store.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	name, err := manifest.ParseName(as)
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
