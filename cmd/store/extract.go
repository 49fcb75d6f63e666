package store

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/cmd/cli/transfer"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/foreign"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/unpack"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/hub"
	"github.com/spf13/cobra"
)

func extractCommand(a *cli.App) *cobra.Command {
	var o extractOptions
	c := &cobra.Command{
		Use:   "extract NAME [PATTERN]... DIR",
		Short: "Write the files of an image to a folder",
		Long: `Write the files that an image holds to the folder DIR, which is made if it does not exist. NAME is a
model of the store, or an image in a registry, of any program: modctl, KitOps, Docker Model Runner, oras,
Ollama, a container image. docs/images.md lists the formats.

PATTERN selects files by path, by name or by a folder that they are in, as in '*.json' or 'docs'. Of an
image in a registry, only the layers that may hold such files are downloaded, and nothing stays in the
store. Archives are unpacked.

A model in ingot's own form has one file per tensor, and an index that makes the folder a checkpoint;
"ingot export" writes it in the layout of Hugging Face instead.

All files are written, or none. Files that exist are not replaced without --force. An archive with links,
devices, paths out of the folder, or names that differ only in case, is refused; of a container image, links
and devices are left out.

--list prints the files and writes nothing. Archives in a registry are listed as they are, because their
files are known only after a download.`,
		Example: `  ingot extract mymodel ./files
  ingot extract registry.example.com/team/kit ./kit
  ingot extract docker.io/ai/smollm2 '*.gguf' .
  ingot extract registry.example.com/team/model --list`,
		Args: cli.Between(1, 64),
		RunE: func(c *cobra.Command, args []string) error {
			if isOllama(args[0]) {
				return cli.Usagef("%s is in Ollama's store; copy it with `ingot cp`, or name it in a registry, as in "+
					"registry.ollama.ai/library/NAME", args[0])
			}
			if hub.IsName(args[0]) {
				return cli.Usagef("%s is on a hub, whose files are no image; download them there", args[0])
			}
			name, err := manifest.ParseName(args[0])
			if err != nil {
				return err
			}
			o.patterns = args[1:]
			if !o.list {
				if len(args) < 2 {
					return cli.Usagef("name a folder: ingot extract %s DIR, or use --list", args[0])
				}
				o.patterns, o.dir = args[1:len(args)-1], args[len(args)-1]
			}
			for _, p := range o.patterns {
				if _, err := path.Match(p, ""); err != nil {
					return cli.Usagef("pattern %q: %v", p, err)
				}
			}
			if o.remote && name.IsLocal() {
				return cli.Usagef("--remote: %s names no registry", name)
			}
			return extract(c.Context(), a, name, o)
		},
	}
	f := c.Flags()
	f.BoolVar(&o.force, "force", false, "replace files that exist")
	f.BoolVar(&o.list, "list", false, "print the files, and write nothing")
	f.BoolVar(&o.remote, "remote", false, "read the registry even if the store has NAME")
	f.BoolVar(&o.json, "json", false, "print the files as JSON, progress as JSON lines")
	o.transfer.Add(c)
	return c
}

type extractOptions struct {
	patterns                  []string
	dir                       string
	force, list, remote, json bool
	transfer                  transfer.Flags
}

// extractJSON is what was extracted, or with --list what there is.
type extractJSON struct {
	Name   string        `json:"name"`
	Digest string        `json:"digest"`
	Format string        `json:"format,omitempty"` // who makes such images
	Dir    string        `json:"dir,omitempty"`
	Files  []extractFile `json:"files"`
}

type extractFile struct {
	Path    string `json:"path"` // of an archive: what it holds, as far as the image says it
	Size    int64  `json:"size"`
	Archive bool   `json:"archive,omitempty"`
}

func extract(ctx context.Context, a *cli.App, name manifest.Name, o extractOptions) error {
	local := name.IsLocal()
	if !local && !o.remote {
		var err error
		if local, err = models.Has(ctx, a, name); err != nil {
			return err
		}
		if local {
			a.Note("note: the store has %s, and its files are those of the store; --remote reads the registry", name)
		}
	}
	out := extractJSON{Name: name.String(), Dir: o.dir}
	var err error
	if local {
		err = extractStored(ctx, a, name, o, &out)
	} else {
		err = extractRemote(ctx, a, name, o, &out)
	}
	switch {
	case err != nil:
		return err
	case o.json:
		return a.PrintJSON(out)
	case o.list:
		return printFiles(a, out.Files)
	}
	var total int64
	for _, f := range out.Files {
		total += f.Size
	}
	plural := "s"
	if len(out.Files) == 1 {
		plural = ""
	}
	a.Note("%d file%s, %s", len(out.Files), plural, cli.Size(total))
	_, err = fmt.Fprintln(a.Out, o.dir)
	return err
}

func printFiles(a *cli.App, list []extractFile) error {
	w := cli.NewTable(a.Out)
	w.Row("SIZE", "FILE")
	for _, f := range list {
		name := f.Path
		if f.Archive {
			name = strings.TrimSpace(name + " (archive)")
		}
		w.Row(cli.Size(f.Size), name)
	}
	return w.Flush()
}

// extractStored writes the files of a model of the store.
func extractStored(ctx context.Context, a *cli.App, name manifest.Name, o extractOptions, out *extractJSON) error {
	st, err := store.OpenExisting("", store.Command(a.Command))
	if err != nil {
		return err
	}
	release, err := st.Lock(ctx) // so that no blob is removed
	if err != nil {
		return err
	}
	defer release()
	raw, err := st.ResolveRaw(ctx, name)
	if err != nil {
		return err
	}
	config, err := configOf(st, raw.Bytes)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	img, err := foreign.Parse(raw.Bytes, config)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	out.Digest = raw.Descriptor.Digest.String()
	return writeFiles(ctx, a, st, img, o, out)
}

// configOf reads the config of a manifest; nil if the store lacks it.
func configOf(st *store.Store, manifestBytes []byte) ([]byte, error) {
	blobs, err := manifest.Blobs(manifestBytes)
	if err != nil || len(blobs) == 0 {
		return nil, err
	}
	config, err := st.ReadBlob(blobs[0].Digest, manifest.MaxConfigSize)
	if errors.Is(err, manifest.ErrBlobMissing) || errors.Is(err, manifest.ErrTooLarge) {
		return nil, nil // it says more of the files, and need not
	}
	return config, err
}

// extractRemote fetches the layers that hold the wanted files, writes the files, and removes the layers.
func extractRemote(ctx context.Context, a *cli.App, name manifest.Name, o extractOptions, out *extractJSON) error {
	progress := transfer.NewProgress(a, "pull", o.json)
	defer progress.End()
	client, err := transfer.NewClient(a, &o.transfer, progress.Set)
	if err != nil {
		return err
	}
	st, err := a.OpenStore()
	if err != nil {
		return err
	}
	options := registry.FilesOptions{Patterns: o.patterns, List: o.list}
	if !o.list {
		options.Check = func(img *foreign.Image) error {
			return unpack.CheckFree(img, o.dir, unpack.Options{Patterns: o.patterns, Force: o.force})
		}
	}
	r, err := client.FetchFiles(ctx, st, name, options)
	if err != nil {
		return err
	}
	progress.End()
	release, err := st.Lock(ctx) // so that no layer is removed
	if err != nil {
		return err
	}
	out.Digest = r.Digest.String()
	err = writeFiles(ctx, a, st, r.Image, o, out)
	r.Done()
	release()
	if dropped := collect.Drop(ctx, st, r.Fetched); dropped != nil {
		a.Note("note: the downloaded layers stay in the store until `ingot prune`: %v", dropped)
	}
	return err
}

// writeFiles writes or lists the files of an image whose layers are in the store.
func writeFiles(
	ctx context.Context, a *cli.App, st *store.Store, img *foreign.Image, o extractOptions, out *extractJSON,
) error {
	out.Format = string(img.Format)
	if o.list {
		for _, l := range img.Layers {
			if l.MayHold(o.patterns) {
				out.Files = append(out.Files, extractFile{l.Path, l.Size, l.Archive})
			}
		}
		return nil
	}
	bar := cli.ByteProgress{Progress: a.Progress(o.json), Verb: "writing"}
	files, err := unpack.Write(ctx, img, st.OpenBlob, o.dir, unpack.Options{
		Patterns: o.patterns, Force: o.force, Progress: bar.Set,
		Note: func(text string) { a.Note("note: %s", text) },
	})
	bar.End()
	if err != nil {
		return fmt.Errorf("%s: %w", out.Name, err)
	}
	for _, f := range files {
		out.Files = append(out.Files, extractFile{Path: f.Path, Size: f.Size})
	}
	return nil
}
