package registry

import (
	"fmt"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/cmd/cli/transfer"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry"
	"github.com/spf13/cobra"
)

func pushCommand(a *cli.App) *cobra.Command {
	var flags transfer.Flags
	var o registry.PushOptions
	var asJSON bool
	c := &cobra.Command{
		Use:   "push NAME [DEST]",
		Short: "Push a model to a registry",
		Long: `Push a model of the store to an OCI registry, and print the digest of its manifest.

DEST is the destination: host/path:tag (default NAME itself). Blobs that the registry has are not
uploaded, and blobs that it has in another repository are mounted from there. Signatures and other
attached artifacts are pushed too. To resume an interrupted push, run it again; large tensors resume in
the middle.`,
		Example: `  ingot push registry.example.com/team/mymodel:v1
  ingot push mymodel ghcr.io/me/mymodel`,
		Args: cli.Between(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			src, err := manifest.ParseName(args[0])
			if err != nil {
				return err
			}
			dst, err := manifest.ParseName(args[len(args)-1])
			if err != nil {
				return err
			}
			if dst.IsLocal() {
				return cli.Usagef("%s names no registry; give a destination: `ingot push %s HOST/PATH`, "+
					"such as registry.example.com/me/%s", dst, src, dst.Path)
			}
			if o.Format != "" && o.Format != manifest.FormatModelPack && o.Format != manifest.FormatOllama {
				return cli.Usagef("--format %q: want %s or %s", o.Format, manifest.FormatModelPack, manifest.FormatOllama)
			}
			store, err := store.OpenExisting("", store.Command(a.Command))
			if err != nil {
				return err
			}
			bar := transfer.NewProgress(a, "push", asJSON)
			defer bar.End()
			flags.Credentials.Names = []string{dst.String()}
			client, err := transfer.NewClient(a, &flags, bar.Set)
			if err != nil {
				return err
			}
			d, err := client.Push(c.Context(), store, src, dst, o)
			bar.End()
			if err != nil {
				return models.ListAbsent(c.Context(), store, src, err)
			}
			if asJSON {
				return a.PrintJSON(transfer.ResultJSON{Name: dst.String(), Digest: d.String(), Counts: bar.Counts()})
			}
			_, err = fmt.Fprintln(a.Out, d)
			return err
		},
	}
	flags.AddUpload(c)
	f := c.Flags()
	f.StringVar(&o.Format, "format", "", "encoding: modelpack or ollama (default the source's)")
	formats := []string{manifest.FormatModelPack, manifest.FormatOllama}
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	f.BoolVar(&o.NoReferrers, "no-referrers", false, "do not push signatures and other artifacts")
	f.BoolVar(&asJSON, "json", false, "print the result as JSON, progress as JSON lines")
	return c
}
