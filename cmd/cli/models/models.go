// Package models finds the models that commands name: in the store, or else in a registry or on a hub, from where it
// pulls or imports them.
package models

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/registry/hub"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/measure"
	"github.com/spf13/cobra"
)

// CheckRequires fails if the model requires a later version of this program.
func CheckRequires(store *store.Store, entry *store.Entry) error {
	texts, err := settings.Read(store, entry)
	if err != nil {
		return err
	}
	return texts.CheckRequires(entry.Name.String(), cli.Version)
}

// Resolve opens the store and resolves a name to a model.
func Resolve(c *cobra.Command, arg string) (*store.Store, *store.Entry, error) {
	name, err := manifest.ParseName(arg)
	if err != nil {
		return nil, nil, err
	}
	store, err := store.Open("")
	if err != nil {
		return nil, nil, err
	}
	entry, err := store.Resolve(c.Context(), name)
	return store, entry, err
}

// ResolveRaw opens the store and resolves a name to a manifest of any kind.
func ResolveRaw(ctx context.Context, arg string) (*store.Store, *store.Raw, error) {
	name, err := ParseName(arg)
	if err != nil {
		return nil, nil, err
	}
	store, err := store.Open("")
	if err != nil {
		return nil, nil, err
	}
	raw, err := store.ResolveRaw(ctx, name)
	return store, raw, err
}

// OpenStyle reads the prompt format of a model in the store. It fails if the model cannot be run.
func OpenStyle(store *store.Store, entry *store.Entry) (*prompt.Style, error) {
	if err := store.CheckPresent(entry, false); err != nil {
		return nil, err
	}
	style, err := prompt.Open(store, entry)
	if err != nil {
		return nil, err
	}
	return style, style.Texts.CheckRequires(entry.Name.String(), cli.Version)
}

// Has reports whether the store has a name. A store that does not exist has none, and is not made.
func Has(ctx context.Context, a *cli.App, name manifest.Name) (bool, error) {
	st, err := store.OpenExisting("", store.Command(a.Command))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = st.ResolveRaw(ctx, name)
	if errors.Is(err, manifest.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// ParseName parses the name of a model of the store. A model that was imported from a hub under its own name has that
// name: hf.co/ORG/REPO@REVISION is hf.co/ORG/REPO:REVISION there, and hf.co/ORG/REPO@REVISION:TYPE has the tag
// REVISION-TYPE.
func ParseName(arg string) (manifest.Name, error) {
	n, err := hub.ParseName(arg)
	if err != nil || n.File != "" && n.Revision == "" && !strings.Contains(n.File, "/") {
		return manifest.ParseName(arg)
	}
	tag := strings.Trim(n.Revision+"-"+n.File, "-")
	if tag == "" {
		tag = manifest.DefaultTag
	}
	tag = strings.Map(func(r rune) rune {
		if r < 0x80 && manifest.IsAlnum(byte(r)) || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, tag)
	return manifest.ParseName(n.Host + "/" + n.Repository + ":" + tag)
}

// Images returns what compares images of a store. A model that requires a later version of this program is refused.
func Images(st *store.Store, thread *mlx.Thread, o runtime.Options) measure.Images {
	return measure.Images{Store: st, Thread: thread, Options: o,
		Check: func(e *store.Entry) error { return CheckRequires(st, e) }}
}

// ListAbsent replaces an error about one missing blob by an error that lists all missing blobs of the model.
func ListAbsent(ctx context.Context, store *store.Store, name manifest.Name, err error) error {
	if !errors.Is(err, manifest.ErrBlobMissing) {
		return err
	}
	entry, failed := store.Resolve(ctx, name)
	if failed != nil {
		return err
	}
	return cmp.Or(store.CheckPresent(entry, true), err)
}
