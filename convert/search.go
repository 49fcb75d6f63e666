package convert

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/convert/search"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/convert/write"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/opencontainers/go-digest"
)

// chooseTypes searches the types of the weights. It writes the unquantized image, and images with chosen types, whose
// blobs the next collection removes.
func chooseTypes(
	ctx context.Context, st *store.Store, name manifest.Name, file *modelfile.File, opts Options,
) (*search.Found, error) {
	ask := opts.Precision
	if ask.Type != 0 || ask.Uniform {
		return nil, fmt.Errorf("%w: a type of all weights, and a search of types", recipe.ErrRecipe)
	}
	plain := opts
	plain.Precision = recipe.Precision{}
	p, err := prepare(ctx, func() (*store.Store, error) { return st, nil }, file, plain)
	if err != nil {
		return nil, err
	}
	defer p.close()
	var planned plan.Options
	if err := p.calibration(ctx, func() (*store.Store, error) { return st, nil }, opts, true, &planned); err != nil {
		return nil, err
	}
	if planned.Equalized != nil { // of scaled channels
		if p.plan, err = plan.New(ctx, p.src, p.options); err != nil {
			return nil, err
		}
	}
	img, err := writeUnnamed(ctx, st, p.plan, opts)
	if err != nil {
		return nil, err
	}
	encoded, _, err := manifest.EncodeModelPack(img)
	if err != nil {
		return nil, err
	}
	entry := &store.Entry{Name: name, Image: img, Digest: digest.FromBytes(encoded)}
	src, err := source.OpenImage(ctx, st, entry, source.Options{})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	var state string
	key := digest.FromString(fmt.Sprint(entry.Digest, planned.Statistics, ask, opts.Search.Measured))
	if opts.Search.Measured != "" {
		state = st.Path(store.ScoresDir, "search-"+key.Encoded())
	}
	return search.Run(ctx, search.Input{
		State: state, Key: key.String(),
		Plain: img, Rules: arch.RulesOf(src.Model, ask.RuleSet), Ask: ask,
		Share: func(s table.Spec) float64 { return arch.ReadShare(src.Model, s) },
		Plan: func(ctx context.Context, q recipe.Precision) (*plan.Plan, error) {
			o := planned
			o.Precision = q
			return plan.New(ctx, src, o)
		},
		Write: func(ctx context.Context, p *plan.Plan) (manifest.Image, error) {
			return writeUnnamed(ctx, st, p, opts)
		},
		Parallel: opts.Parallel,
	}, *opts.Search)
}

// writeUnnamed writes the blobs of an image that gets no name.
func writeUnnamed(ctx context.Context, st *store.Store, p *plan.Plan, opts Options) (manifest.Image, error) {
	written, err := write.Image(ctx, st, p, write.Options{Parallel: opts.Parallel, Memory: opts.Memory})
	if err != nil {
		return manifest.Image{}, err
	}
	defer written.Close()
	written.Done()
	return written.Image, nil
}
