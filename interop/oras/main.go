// Command oras copies an image with oras-go, between registries and OCI image layouts:
//
//	oras [-concurrency N] SOURCE DESTINATION
//
// Each is oci:FOLDER#TAG or HOST/PATH:TAG. Hosts are accessed without TLS and credentials. It prints the manifest's
// digest.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry/remote"
)

func main() {
	concurrency := flag.Int("concurrency", 3, "blobs at a time; the library's own default is 3")
	flag.Parse()
	if err := run(context.Background(), flag.Args(), *concurrency); err != nil {
		fmt.Fprintln(os.Stderr, "oras:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, concurrency int) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: oras [-concurrency N] SOURCE DESTINATION")
	}
	from, fromTag, err := source(ctx, args[0])
	if err != nil {
		return err
	}
	to, toTag, err := destination(ctx, args[1])
	if err != nil {
		return err
	}
	opts := oras.DefaultCopyOptions
	opts.Concurrency = concurrency
	desc, err := oras.Copy(ctx, from, fromTag, to, toTag, opts)
	if err != nil {
		return err
	}
	fmt.Println(desc.Digest)
	return nil
}

// source opens a layout read-only, because it may belong to another program.
func source(ctx context.Context, where string) (oras.ReadOnlyTarget, string, error) {
	if dir, tag, ok := layout(where); ok {
		s, err := oci.NewFromFS(ctx, os.DirFS(dir))
		return s, tag, err
	}
	return repository(where)
}

func destination(ctx context.Context, where string) (oras.Target, string, error) {
	if dir, tag, ok := layout(where); ok {
		s, err := oci.NewWithContext(ctx, dir)
		return s, tag, err
	}
	return repository(where)
}

func layout(where string) (dir, tag string, ok bool) {
	rest, ok := strings.CutPrefix(where, "oci:")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "#")
}

func repository(where string) (*remote.Repository, string, error) {
	repo, err := remote.NewRepository(where)
	if err != nil {
		return nil, "", err
	}
	repo.PlainHTTP = true
	return repo, repo.Reference.Reference, nil
}
