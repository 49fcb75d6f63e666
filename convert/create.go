package convert

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/convert/adapter"
	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/convert/provenance"
	"github.com/ingotml/ingot/convert/search"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/convert/write"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/statistics"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/safetensors"
	"github.com/opencontainers/go-digest"
)

// Options control how an image is created from a Modelfile.
type Options struct {
	Dir       string // the Modelfile's folder, the base of relative paths; "" = the current folder
	StoreOnly bool   // resolve FROM and DRAFT in the store or by Remote, never as folders: for requests from clients
	Remote    Remote // opens FROM, DRAFT and ADAPTER that are not on this machine; nil = there are none
	Version   string // the program's, for REQUIRES; not compared unless it is a valid version
	// HashFiles adds checksums of whole source files to the provenance record. It reads these files a second time.
	HashFiles bool
	Exact     bool             // as in [source.Options]
	AnyLinks  bool             // as in [source.Options]
	As        string           // as in [source.Options], of FROM
	Precision recipe.Precision // of the weights; the zero value keeps the source's types
	// Calibration names the statistics that codes depend on: "" or "none" for none, "auto" for those that the store has
	// for the source's weights, or else a file.
	Calibration string
	// Equalize scales channels by the statistics before weights are quantized; see package equalize.
	Equalize bool
	// Search, if set, chooses the types of weights that Precision has no rules for.
	Search   *search.Options
	Parallel int               // as in [write.Options]
	Memory   int64             // as in [write.Options]
	Progress func(write.Event) // as in [write.Options]

	// Push, if set, gets the image: each blob as soon as it is complete, unless Accept is set, and the manifest last. The
	// blobs and the name stay in the store, unless NoKeep is set. NoKeep cannot be combined with Accept.
	Push   Pusher
	NoKeep bool

	// Accept decides whether the image is stored. It is called before the image gets its name. An error that is
	// ErrRefused removes both images. nil accepts every image.
	Accept func(ctx context.Context, c Candidate) error
}

// Candidate is an image before it gets its name.
type Candidate struct {
	Image, Plain manifest.Image // Plain is the same image without quantization
	// Statistics and StatisticsText are the digests of the statistics that codes depend on, and of the text behind them.
	Statistics, StatisticsText digest.Digest
}

// Remote opens checkpoints and adapters that are not on this machine.
type Remote interface {
	// Names reports whether a value of FROM, DRAFT or ADAPTER is the name of one, whether there is one or not.
	Names(value string) bool
	// Open opens it. The folder may be a [source.Remote]. ctx is that of all reads, too. If the folder is an [io.Closer],
	// it is closed after the last read.
	Open(ctx context.Context, value string) (safetensors.Folder, error)
}

// Folders are local folders that FROM, DRAFT and ADAPTER may name by their paths, whatever Options.StoreOnly says.
type Folders []string

// Names implements [Remote].
func (f Folders) Names(value string) bool { return slices.Contains(f, value) }

// Open implements [Remote].
func (Folders) Open(_ context.Context, value string) (safetensors.Folder, error) {
	return safetensors.LinkedDir(value), nil // links to uploads, where there are no hard links
}

// Pusher sends an image to a registry.
type Pusher interface {
	write.Sink
	// Finish sends what the registry lacks of the image, its referrers from the store, and last the manifest.
	Finish(ctx context.Context, manifest, config []byte) error
}

// ErrRefused reports that an image was not accepted.
var ErrRefused = errors.New("the image is refused")

// Result describes the image that Create made.
type Result struct {
	Name     manifest.Name
	Digest   digest.Digest // of the manifest
	Tensors  int
	Bytes    int64 // of all blobs
	Reused   int64 // bytes of blobs that were already in the store
	Resumed  int64 // bytes of blobs that an interrupted run had completed
	Warnings []string

	Search *search.Found // of Options.Search
}

// Create makes the image that a Modelfile describes and stores it under a name. If it fails, models and blobs in the
// store are unchanged, and calling it again resumes.
func Create(
	ctx context.Context, store *store.Store, name manifest.Name, file *modelfile.File, opts Options,
) (Result, error) {
	r, err := create(ctx, store, name, file, opts)
	refused := err != nil && isFinal(err) || errors.Is(err, search.ErrGoal)
	if (opts.Accept != nil || opts.Search != nil) && (err == nil || refused) {
		// Collect the blobs of images that were compared. If the store is in use, a later collection does it.
		_, errPrune := collect.Prune(context.WithoutCancel(ctx), store, collect.PruneOptions{KeepScores: true})
		if errPrune != nil && !errors.Is(errPrune, manifest.ErrBusy) {
			err = errors.Join(err, write.Explain(errPrune))
		}
	}
	return r, err
}

func create(
	ctx context.Context, st *store.Store, name manifest.Name, file *modelfile.File, opts Options,
) (Result, error) {
	if name.Digest != "" {
		return Result{}, fmt.Errorf("create %s: the name of a new model must not have a digest", name)
	}
	if opts.NoKeep && (opts.Push == nil || opts.Accept != nil) {
		return Result{}, fmt.Errorf("create %s: an image that is not kept must be pushed, and cannot be measured", name)
	}
	release, err := st.Lock(ctx) // before FROM is resolved, because the model that it names may be pruned
	if err != nil {
		return Result{}, write.Explain(err)
	}
	defer release()
	var found *search.Found
	if opts.Search != nil {
		if found, err = chooseTypes(ctx, st, name, file, opts); err != nil {
			return Result{}, err
		}
		opts.Precision = found.Precision
	}
	p, err := prepare(ctx, func() (*store.Store, error) { return st, nil }, file, opts)
	if err != nil {
		return Result{}, err
	}
	defer p.close()
	o := write.Options{Parallel: opts.Parallel, Memory: opts.Memory, Progress: opts.Progress, NoKeep: opts.NoKeep}
	if opts.Push != nil && opts.Accept == nil {
		o.Sink = opts.Push
	}
	written, err := write.Image(ctx, st, p.plan, o)
	if err != nil {
		return Result{}, err
	}
	defer written.Close()
	if opts.Accept != nil {
		if err := accept(ctx, st, file, opts, p.candidate(written.Image)); err != nil {
			if isFinal(err) {
				written.Done()
			}
			return Result{}, err
		}
	}
	// All blobs are published, so the run can no longer be cancelled.
	if err := p.made(written, opts).Attach(context.WithoutCancel(ctx), st); err != nil {
		return Result{}, write.Explain(err)
	}
	d, err := finish(ctx, st, name, written.Image, opts)
	if err != nil {
		return Result{}, err
	}
	written.Done()
	return Result{
		Name: name, Digest: d, Tensors: len(p.plan.Tensors), Bytes: written.Image.Size(),
		Reused: written.Reused, Resumed: written.Resumed, Warnings: append(p.plan.Warnings, p.rounding()...),
		Search: found,
	}, nil
}

// isFinal reports whether another run of a create would have the same error, so that it has nothing to resume.
func isFinal(err error) bool { return errors.Is(err, ErrRefused) || source.Unusable(err) }

// finish gives the image its name, and pushes it. If the push fails, the state for resuming stays.
func finish(
	ctx context.Context, st *store.Store, name manifest.Name, img manifest.Image, opts Options,
) (d digest.Digest, err error) {
	if !opts.NoKeep {
		if d, err = st.Put(context.WithoutCancel(ctx), name, img); err != nil {
			return "", write.Explain(err)
		}
	}
	if opts.Push == nil {
		return d, nil
	}
	encoded, config, err := manifest.EncodeModelPack(img)
	if err != nil {
		return "", err
	}
	return digest.FromBytes(encoded), opts.Push.Finish(ctx, encoded, config)
}

// accept writes the image a second time, without quantization, and calls opts.Accept with both.
func accept(
	ctx context.Context, st *store.Store, file *modelfile.File, opts Options, c Candidate,
) error {
	opts.Precision = recipe.Precision{}
	p, err := prepare(ctx, func() (*store.Store, error) { return st, nil }, file, opts)
	if err != nil {
		return fmt.Errorf("the unquantized model, for comparison: %w", err)
	}
	defer p.close()
	plain, err := write.Image(ctx, st, p.plan,
		write.Options{Parallel: opts.Parallel, Memory: opts.Memory, Progress: opts.Progress})
	if err != nil {
		return err
	}
	defer plain.Close()
	c.Plain = plain.Image
	err = opts.Accept(ctx, c)
	if err == nil || isFinal(err) {
		plain.Done()
	}
	return err
}

// DryRun returns the plan of the image that Create would make. It writes nothing, and calls store only if the Modelfile
// names a model in it.
func DryRun(
	ctx context.Context, store func() (*store.Store, error), file *modelfile.File, opts Options,
) (*plan.Plan, error) {
	p, err := prepareWith(ctx, store, file, opts, true)
	if err != nil {
		return nil, err
	}
	defer p.close()
	return p.plan, nil
}

// prepared is a Modelfile with its models open and its image planned.
type prepared struct {
	src, draft *source.Source
	adapters   []*adapter.Adapter
	plan       *plan.Plan
	options    plan.Options      // of plan
	statistics *statistics.Found // nil if there are none
}

// candidate returns the candidate that Accept judges, without the unquantized image.
func (p *prepared) candidate(img manifest.Image) Candidate {
	c := Candidate{Image: img, Statistics: p.plan.Statistics}
	if p.statistics != nil {
		c.StatisticsText = p.statistics.Text
	}
	return c
}

// made describes the written image for its provenance record.
func (p *prepared) made(written *write.Written, opts Options) provenance.Made {
	return provenance.Made{
		From: p.src, Draft: p.draft, Adapters: p.adapters, Plan: p.plan, Written: written,
		Precision: opts.Precision, Version: opts.Version, HashFiles: opts.HashFiles,
		StatisticsText: p.candidate(written.Image).StatisticsText,
	}
}

func (p *prepared) close() {
	for _, src := range []*source.Source{p.src, p.draft} {
		if src != nil {
			_ = src.Close()
		}
	}
	if p.statistics != nil {
		_ = p.statistics.Close()
	}
	for _, a := range p.adapters {
		_ = a.Close()
		closeFolder(a.Folder)
	}
}

func prepare(
	ctx context.Context, store func() (*store.Store, error), file *modelfile.File, opts Options,
) (*prepared, error) {
	return prepareWith(ctx, store, file, opts, false)
}

// prepareWith plans an image. headersOnly reads no data of tensors.
func prepareWith(
	ctx context.Context, store func() (*store.Store, error), file *modelfile.File, opts Options, headersOnly bool,
) (*prepared, error) {
	req, err := parseRequest(ctx, file, opts.Version)
	if err != nil {
		return nil, err
	}
	p := &prepared{}
	o := opener{store: store, file: file, dir: opts.Dir, storeOnly: opts.StoreOnly, remote: opts.Remote,
		options: source.Options{Exact: opts.Exact, AnyLinks: opts.AnyLinks, As: opts.As, HeadersOnly: headersOnly}}
	if err := p.open(ctx, &req, o, opts.Version); err != nil {
		p.close()
		return nil, err
	}
	req.plan.Precision = opts.Precision
	isQuantized := opts.Precision.Type != 0 || len(opts.Precision.Rules) > 0
	if err := p.calibration(ctx, store, opts, isQuantized, &req.plan); err != nil {
		p.close()
		return nil, err
	}
	p.options = req.plan
	if p.plan, err = plan.New(ctx, p.src, req.plan); err != nil {
		p.close()
		return nil, err
	}
	p.plan.Warnings = append(req.warnings, p.plan.Warnings...)
	return p, nil
}

func (p *prepared) open(ctx context.Context, req *request, o opener, version string) (err error) {
	from, left, err := o.model(ctx, req.from)
	if err != nil {
		return err
	}
	req.plan.LeftFiles = left
	if p.src, err = o.open(ctx, from); err != nil {
		return err
	}
	if err := p.src.Record().CheckRequires(p.src.From, version); err != nil {
		return err
	}
	if err := p.mergeAdapters(ctx, req, o); err != nil || req.draft == nil {
		return err
	}
	o.options.As = ""
	if p.draft, err = o.open(ctx, *req.draft); err != nil {
		return err
	}
	if p.draft.From == p.src.From {
		return o.file.Errorf(*req.draft, "the DRAFT model is the FROM model itself")
	}
	req.plan.Draft = p.draft
	return nil
}

// rounding warns about the scales of a GGUF file that were rounded.
func (p *prepared) rounding() []string {
	tensors, largest := p.src.Rounding()
	if tensors == 0 || largest == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the scales of %d tensors are rounded to float16; the largest error of an "+
		"element is %.2g; --exact keeps them", tensors, largest)}
}
