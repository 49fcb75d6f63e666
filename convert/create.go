package convert

import (
	"context"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/convert/adapter"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/modelfile"
	"github.com/opencontainers/go-digest"
)

// Options says how a Modelfile is carried out.
type Options struct {
	Dir       string      // the Modelfile's folder, from which relative paths start; "" = the current one
	StoreOnly bool        // FROM and DRAFT name models of the store, never folders: for what others ask for
	Version   string      // of the program, for REQUIRES; what is no version is not compared
	HashFiles bool        // the record of what the image is made from has sums of whole files, for which they are read once more
	Precision Precision   // of the weights; the zero value leaves them as they are
	Parallel  int         // see WriteOptions
	Memory    int64       // see WriteOptions
	Progress  func(Event) // see WriteOptions

	// Accept decides, before the image has its name, whether it gets one: plain is the same image with all weights as they were. An error that is
	// ErrRefused leaves nothing of either behind. nil: every image is accepted.
	Accept func(ctx context.Context, img, plain manifest.Image) error
}

// ErrRefused says that an image was not accepted.
var ErrRefused = errors.New("the image is refused")

// Result is what Create made.
type Result struct {
	Name     manifest.Name
	Digest   digest.Digest // of the manifest
	Tensors  int
	Bytes    int64 // of all blobs
	Reused   int64 // of them, bytes that the store had already
	Resumed  int64 // of them, bytes that an earlier run which did not end had finished
	Warnings []string
}

// Create makes the image that a Modelfile describes and puts it under a name. When it fails, the models and blobs of the
// store are as they were, and calling it again goes on from where it was.
func Create(ctx context.Context, store *manifest.Store, name manifest.Name, file *modelfile.File, opts Options) (Result, error) {
	r, err := create(ctx, store, name, file, opts)
	if opts.Accept != nil && (err == nil || errors.Is(err, ErrRefused)) {
		// Of what was only there to compare. Where others are at work it stays for a later collection.
		if _, errPrune := store.Prune(context.WithoutCancel(ctx), manifest.PruneOptions{}); errPrune != nil && !errors.Is(errPrune, manifest.ErrBusy) {
			err = errors.Join(err, explain(errPrune))
		}
	}
	return r, err
}

func create(ctx context.Context, store *manifest.Store, name manifest.Name, file *modelfile.File, opts Options) (Result, error) {
	if name.Digest != "" {
		return Result{}, fmt.Errorf("create %s: a new model's name has no digest", name)
	}
	release, err := store.Lock(ctx) // from here on, since FROM may name a model whose blobs are used again
	if err != nil {
		return Result{}, explain(err)
	}
	defer release()
	p, err := prepare(ctx, func() (*manifest.Store, error) { return store, nil }, file, opts)
	if err != nil {
		return Result{}, err
	}
	defer p.close()
	written, err := p.plan.Write(ctx, store, WriteOptions{Parallel: opts.Parallel, Memory: opts.Memory, Progress: opts.Progress})
	if err != nil {
		return Result{}, err
	}
	defer written.Close()
	if opts.Accept != nil {
		if err := accept(ctx, store, file, opts, written.Image); err != nil {
			if errors.Is(err, ErrRefused) {
				written.Done()
			}
			return Result{}, err
		}
	}
	// All blobs have their names: too late to be cancelled.
	if err := p.attach(context.WithoutCancel(ctx), store, written, opts); err != nil {
		return Result{}, explain(err)
	}
	d, err := store.Put(context.WithoutCancel(ctx), name, written.Image)
	if err != nil {
		return Result{}, explain(err)
	}
	written.Done()
	return Result{
		Name: name, Digest: d, Tensors: len(p.plan.Tensors), Bytes: written.Image.Size(), Reused: written.Reused, Resumed: written.Resumed,
		Warnings: p.plan.Warnings,
	}, nil
}

// accept writes the image once more, with its weights as they were, and asks.
func accept(ctx context.Context, store *manifest.Store, file *modelfile.File, opts Options, img manifest.Image) error {
	opts.Precision = Precision{}
	p, err := prepare(ctx, func() (*manifest.Store, error) { return store, nil }, file, opts)
	if err != nil {
		return fmt.Errorf("the model as it was, to compare with: %w", err)
	}
	defer p.close()
	plain, err := p.plan.Write(ctx, store, WriteOptions{Parallel: opts.Parallel, Memory: opts.Memory, Progress: opts.Progress})
	if err != nil {
		return err
	}
	defer plain.Close()
	err = opts.Accept(ctx, img, plain.Image)
	if err == nil || errors.Is(err, ErrRefused) {
		plain.Done()
	}
	return err
}

// DryRun plans what Create would make, and writes nothing. The store is asked for only when the Modelfile names a model in it.
func DryRun(ctx context.Context, store func() (*manifest.Store, error), file *modelfile.File, opts Options) (*Plan, error) {
	p, err := prepare(ctx, store, file, opts)
	if err != nil {
		return nil, err
	}
	defer p.close()
	return p.plan, nil
}

// prepared is a Modelfile whose models are open and whose image is planned.
type prepared struct {
	inv, draft *Inventory
	adapters   []*adapter.Adapter
	plan       *Plan
}

func (p *prepared) close() {
	for _, inv := range []*Inventory{p.inv, p.draft} {
		if inv != nil {
			_ = inv.Close()
		}
	}
	for _, a := range p.adapters {
		_ = a.Close()
	}
}

func prepare(ctx context.Context, store func() (*manifest.Store, error), file *modelfile.File, opts Options) (*prepared, error) {
	req, err := read(ctx, file, opts.Version)
	if err != nil {
		return nil, err
	}
	p := &prepared{}
	if err := p.open(ctx, &req, opener{store: store, file: file, dir: opts.Dir, storeOnly: opts.StoreOnly}, opts.Version); err != nil {
		p.close()
		return nil, err
	}
	req.plan.Precision = opts.Precision
	if p.plan, err = p.inv.Plan(ctx, req.plan); err != nil {
		p.close()
		return nil, err
	}
	p.plan.Warnings = append(req.warnings, p.plan.Warnings...)
	return p, nil
}

func (p *prepared) open(ctx context.Context, req *request, o opener, version string) (err error) {
	if p.inv, err = o.open(ctx, req.from); err != nil {
		return err
	}
	if err := p.inv.checkBase(version); err != nil {
		return err
	}
	if err := p.mergeAdapters(req, o); err != nil || req.draft == nil {
		return err
	}
	if p.draft, err = o.open(ctx, *req.draft); err != nil {
		return err
	}
	if p.draft.From == p.inv.From {
		return o.file.Errorf(*req.draft, "the DRAFT model is the FROM model itself")
	}
	req.plan.Draft = p.draft
	return nil
}
