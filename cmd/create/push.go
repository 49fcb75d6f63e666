package create

import (
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/transfer"
	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/hub"
	"github.com/spf13/cobra"
)

// pushFlags adds the flags of a create that pushes.
func (o *createOptions) pushFlags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&o.push, "push", false, "upload to the registry of NAME while converting")
	f.BoolVar(&o.noKeep, "no-keep", false, "with --push: keep nothing in the store")
	f.BoolVar(&o.noReferrers, "no-referrers", false, "with --push: do not push the provenance record")
}

// checkPush checks the flags against the name.
func (o *createOptions) checkPush(name manifest.Name) error {
	switch {
	case o.noReferrers && !o.push:
		return cli.Usagef("--no-referrers needs --push: the store keeps the provenance record")
	case o.noKeep && !o.push:
		return cli.Usagef("--no-keep needs --push: nothing would have the model")
	case o.noKeep && o.maxKL != 0:
		return cli.Usagef("--no-keep and --%s cannot be combined: measuring needs the model in the store", maxKLFlag)
	case o.noKeep && o.search.target != "":
		return cli.Usagef("--no-keep and --target-size cannot be combined: measuring needs the model in the store")
	case o.push && hub.IsName(name.String()):
		return cli.Usagef("%s is on a hub, which is no registry; --push needs a name such as registry.example.com/me/model",
			name)
	case o.push && name.IsLocal():
		return cli.Usagef("%s names no registry; --push needs a name such as registry.example.com/me/%s", name, name.Path)
	}
	return nil
}

// pushOptions sets where an image is pushed.
func pushOptions(a *cli.App, options *convert.Options, s *store.Store, name manifest.Name, o createOptions) error {
	if !o.push {
		return nil
	}
	o.transfer.Credentials.Names = []string{name.String()}
	client, err := transfer.NewClient(a, &o.transfer, nil)
	if err != nil {
		return err
	}
	uploader, err := client.Uploader(s, name, registry.PushOptions{NoReferrers: o.noReferrers})
	if err != nil {
		return err
	}
	options.Push, options.NoKeep = uploader, o.noKeep
	return nil
}
