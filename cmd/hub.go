package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/convert/write"
	"github.com/ingotml/ingot/internal/usercache"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/hub"
	"github.com/ingotml/ingot/safetensors"
	"github.com/spf13/pflag"
)

// hubFlags are the flags of commands that make images of a hub's repositories.
type hubFlags struct {
	keep, verify, strict bool
	wait                 settingFlags
}

func (h *hubFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&h.keep, "keep-source", false, "store the hub's files in its cache, HF_HUB_CACHE")
	f.BoolVar(&h.verify, "verify-source", false, "read whole files of a hub, to check their SHA-256")
}

// hubRemote opens checkpoints of a hub for package convert.
type hubRemote struct{ client func() (*hub.Client, error) }

func (hubRemote) Names(value string) bool { return hub.IsName(value) }

func (h hubRemote) Open(ctx context.Context, value string) (safetensors.Folder, error) {
	name, err := hub.ParseName(value)
	if err != nil {
		return nil, err
	}
	client, err := h.client()
	if err != nil {
		return nil, err
	}
	folder, err := client.Open(ctx, name)
	if err != nil {
		return nil, err // not folder, which would be an interface that is not nil
	}
	return folder, nil
}

// hubRemote returns what opens checkpoints of a hub. memory is the limit of the whole command.
func (a *app) hubRemote(o hubFlags, memory int64) convert.Remote {
	return hubRemote{sync.OnceValues(func() (*hub.Client, error) { return a.hubClient(o, memory) })}
}

// Memory for what is read ahead, of the command's.
const (
	minAhead   = 4 << 20
	maxAhead   = 64 << 20
	aheadShare = 8
)

// hubClient returns a client with the settings of the environment. memory is the limit of the whole command.
func (a *app) hubClient(o hubFlags, memory int64) (*hub.Client, error) {
	opts, err := hub.Environment(os.Getenv)
	if err != nil {
		return nil, err
	}
	given, err := o.wait.given()
	if err != nil {
		return nil, err
	}
	if opts.Setting, err = o.wait.setting(); err != nil {
		return nil, err
	}
	opts.Stall = cmp.Or(given.Timeout, opts.Stall) // a flag, the environment, the file
	opts.Keep, opts.Verify, opts.Strict = o.keep, o.verify, o.strict
	opts.Memory = min(max(memory/aheadShare, minAhead), maxAhead)
	opts.UserAgent = "ingot/" + Version
	opts.Verified = usercache.Dir("verified")
	opts.Notice = func(text string) { a.note("%s", text) }
	return hub.New(opts), nil
}

// parseStored parses the name of a model of the store. A model that was imported from a hub under its own name has that
// name: hf.co/ORG/REPO@REVISION is hf.co/ORG/REPO:REVISION there, and hf.co/ORG/REPO@REVISION:TYPE has the tag
// REVISION-TYPE.
func parseStored(arg string) (manifest.Name, error) {
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

// ensure makes sure that the store has a model, and returns its name there. If it is missing and its name has a hub or
// a registry, ensure imports or pulls it, after asking on a terminal, or with yes. ready is called before that; it
// reports what would make the import useless.
func (a *app) ensure(ctx context.Context, arg string, yes bool, ready func() error) (string, error) {
	name, err := parseStored(arg)
	if err != nil {
		return "", err
	}
	if name.IsLocal() {
		return arg, nil
	}
	st, err := store.Open("")
	if err != nil {
		return "", err
	}
	_, missing := st.ResolveRaw(ctx, name)
	switch {
	case !errors.Is(missing, manifest.ErrNotFound):
		return name.String(), missing
	case !yes && !a.onTerminal() && hub.IsName(arg):
		return "", fmt.Errorf("%s is not in the store; import it with --yes, or with `ingot create %s %s`", name, name, arg)
	case !yes && !a.onTerminal():
		return "", missing
	}
	if err := ready(); err != nil {
		return "", err
	}
	if hub.IsName(arg) {
		return name.String(), a.importHub(ctx, name, arg, yes, missing)
	}
	if wanted, err := a.agree(ctx, yes, fmt.Sprintf("%s is not in the store; pull it?", name)); err != nil || !wanted {
		return "", errors.Join(err, missing)
	}
	return name.String(), a.fetchModel(ctx, name)
}

// fetchModel pulls a model to run it. An image that holds none is refused before it is downloaded.
func (a *app) fetchModel(ctx context.Context, name manifest.Name) error {
	_, _, err := a.fetch(ctx, name, pullOptions{pull: registry.PullOptions{Model: true}})
	return err
}

func (a *app) agree(ctx context.Context, yes bool, question string) (bool, error) {
	if yes {
		return true, nil
	}
	return a.confirm(ctx, question)
}

// importHub imports a repository of a hub under its own name.
func (a *app) importHub(ctx context.Context, name manifest.Name, arg string, yes bool, missing error) error {
	n, err := hub.ParseName(arg)
	if err != nil {
		return err
	}
	client, err := a.hubClient(hubFlags{}, minAhead)
	if err != nil {
		return err
	}
	folder, err := client.Open(ctx, n)
	if err != nil {
		return err
	}
	bytes, err := source.WeightBytes(folder)
	_ = folder.Close()
	if err != nil {
		return err
	}
	wanted, err := a.agree(ctx, yes, fmt.Sprintf("%s is not in the store; import it (%s)?", n, size(bytes)))
	if err != nil {
		return err
	}
	if !wanted {
		return missing
	}
	from := &modelfile.File{Commands: []modelfile.Command{{Name: modelfile.From, Value: arg}}}
	st, err := a.openStore()
	if err != nil {
		return err
	}
	options := convert.Options{Version: Version, Memory: write.DefaultMemory}
	options.Remote = a.hubRemote(hubFlags{}, options.Memory)
	_, err = a.convert(ctx, st, name, from, options, false)
	return err
}
