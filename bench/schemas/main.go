// Command schemas measures structured output with published suites of schemas: how many compile, whether an invalid
// instance is accepted or a valid one refused, and the times of compilation and of masks over 128,256 tokens.
//
//	schemas [-masks=false] [-list KIND] DIR
//
// DIR holds MaskBench's files (guidance-ai/jsonschemabench, folder maskbench/data) or those of a draft of
// JSON-Schema-Test-Suite (tests/draft2020-12).
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/ingotml/ingot/grammar"
	"github.com/ingotml/ingot/grammar/grammartest"
)

func main() {
	var o options
	flag.BoolVar(&o.masks, "masks", true, "measure masks")
	flag.StringVar(&o.list, "list", "", "also list `KIND`: refused, accepted, rejected or slow")
	flag.StringVar(&o.profile, "profile", "", "write a profile of the processor time to `FILE`")
	flag.IntVar(&o.every, "every", 1, "read every `N`th file only")
	flag.StringVar(&o.draft, "schema", "", "$schema of schemas that have none")
	flag.StringVar(&o.refs, "refs", "", "`FOLDER` of the schemas at http://localhost:1234/, as in JSON-Schema-Test-Suite")
	flag.StringVar(&o.digests, "digests", "", "write a checksum of each schema's masks to `FILE`, to compare builds")
	flag.StringVar(&o.export, "export", "", "write schemas, tokens and times for peer.py to `FILE`")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(flag.Arg(0), o); err != nil {
		fmt.Fprintln(os.Stderr, "schemas:", err)
		os.Exit(1)
	}
}

type options struct {
	masks                                 bool
	list                                  string
	every                                 int
	profile, draft, refs, export, digests string
}

// schemaCase is one schema with its instances.
type schemaCase struct {
	name   string
	Schema json.RawMessage `json:"schema"`
	Tests  []struct {
		Description string          `json:"description"`
		Valid       bool            `json:"valid"`
		Data        json.RawMessage `json:"data"`
	} `json:"tests"`
	Description string `json:"description"`
}

// read returns the cases of one file: MaskBench has one in a file, JSON-Schema-Test-Suite a list.
func read(path string) ([]schemaCase, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var cases []schemaCase
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		err = json.Unmarshal(data, &cases)
	} else {
		cases = make([]schemaCase, 1)
		err = json.Unmarshal(data, &cases[0])
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i := range cases {
		cases[i].name = filepath.Base(path)
		if len(cases) > 1 {
			cases[i].name += "/" + cases[i].Description
		}
	}
	return cases, nil
}

// tally is what a run counts.
type tally struct {
	options
	schemas, compiled              int
	valid, validRefused, notJudged int
	invalid, invalidAccepted       int
	compile, first, masks          []time.Duration
	reasons                        map[string]int

	vocabulary *grammar.Vocabulary
	ids        func(text string) []int32

	schemaOptions grammar.SchemaOptions

	exported *export
	digests  io.Writer // nil: none
}

func run(dir string, o options) error {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("%s is not a folder: get the suite with `git clone https://github.com/guidance-ai/jsonschemabench`"+
			" and name its folder maskbench/data", dir)
	}
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	runtime.LockOSThread()
	t := &tally{options: o, reasons: map[string]int{}}
	if o.refs != "" {
		var err error
		if t.schemaOptions.Refs, err = grammar.SchemaRefs(o.refs, "http://localhost:1234/"); err != nil {
			return err
		}
	}
	tokens := grammartest.Tokens(128256)
	t.vocabulary = grammar.NewVocabulary(tokens, nil)
	t.ids = grammartest.Longest(tokens)
	if o.export != "" {
		var err error
		if t.exported, err = newExport(o.export, tokens); err != nil {
			return err
		}
	}
	if o.digests != "" {
		f, err := os.Create(o.digests)
		if err != nil {
			return err
		}
		defer f.Close()
		t.digests = f
	}
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "optional" {
			return fs.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".json" {
			return nil
		}
		if files++; files%o.every != 0 {
			return nil
		}
		cases, err := read(path)
		for _, c := range cases {
			if wrong := t.check(c); wrong != nil {
				return wrong
			}
		}
		return err
	})
	if err == nil && files == 0 {
		err = fmt.Errorf("%s has no .json files", dir)
	}
	if t.exported != nil {
		if wrong := t.exported.close(); err == nil {
			err = wrong
		}
	}
	if err != nil {
		return err
	}
	t.print()
	if t.invalidAccepted > 0 {
		return errors.New("invalid instances were accepted")
	}
	return nil
}

func (t *tally) say(kind, format string, args ...any) {
	if t.list == kind {
		fmt.Printf(format+"\n", args...)
	}
}

// source returns the schema of a case, with the dialect of the options if it names none.
func (t *tally) source(c schemaCase) []byte {
	schema := []byte(c.Schema)
	if t.draft != "" && bytes.HasPrefix(schema, []byte("{")) && !bytes.Contains(schema, []byte(`"$schema"`)) {
		schema = append([]byte(`{"$schema":"`+t.draft+`",`), schema[1:]...)
		schema = bytes.Replace(schema, []byte(",}"), []byte("}"), 1)
	}
	return schema
}

func (t *tally) check(c schemaCase) error {
	t.schemas++
	schema := t.source(c)
	began := now()
	g, err := grammar.CompileSchemaWith(context.Background(), schema, t.schemaOptions)
	took := now() - began
	t.compile = append(t.compile, took)
	if took > 20*time.Millisecond {
		t.say("slow", "%v compile %s %v", took, c.name, err)
	}
	if errors.Is(err, grammar.ErrEmpty) { // held exactly: no instance is accepted
		t.compiled++
		for _, test := range c.Tests {
			if test.Valid {
				t.valid, t.validRefused = t.valid+1, t.validRefused+1
			} else {
				t.invalid++
			}
		}
		return nil
	}
	if err != nil {
		t.reasons[reason(err)]++
		t.say("refused", "%s: %v", c.name, err)
		return nil
	}
	t.compiled++
	for i, test := range c.Tests {
		if t.options.list == "slow" { // times alone
			break
		}
		accepted, err := g.AcceptsJSON(test.Data)
		if err != nil {
			t.notJudged++
			t.say("rejected", "%s: %d: %v", c.name, i, err)
			continue
		}
		if test.Valid {
			if t.valid++; !accepted {
				t.validRefused++
				t.say("rejected", "%s: %d %s: %.200s", c.name, i, test.Description, test.Data)
			}
		} else if t.invalid++; accepted {
			t.invalidAccepted++
			t.say("accepted", "%s: %d %s: %.200s", c.name, i, test.Description, test.Data)
		}
	}
	if !t.options.masks {
		return nil
	}
	return t.measure(g, c)
}

// dumps returns JSON with the white space of Python's json.dumps.
func dumps(raw []byte) string {
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		return string(raw)
	}
	var b strings.Builder
	inside, escaped := false, false
	for _, c := range compact.Bytes() {
		b.WriteByte(c)
		switch {
		case escaped:
			escaped = false
		case inside && c == '\\':
			escaped = true
		case c == '"':
			inside = !inside
		case !inside && (c == ',' || c == ':'):
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// measure takes the masks along each instance, up to the token that the grammar refuses.
func (t *tally) measure(g *grammar.Grammar, c schemaCase) error {
	mask := make([]uint32, grammar.Words(t.vocabulary.Size()))
	var out *exportedSchema
	if t.exported != nil {
		out = &exportedSchema{Name: c.name, Schema: c.Schema}
	}
	first := true
	d := digest{masks: crc32.New(crc32.MakeTable(crc32.Castagnoli))}
	for _, test := range c.Tests {
		ids := t.ids(dumps(test.Data))
		began := now()
		m, err := g.Matcher(t.vocabulary, -1)
		if err != nil {
			t.say("slow", "%s: %v", c.name, err)
			return nil
		}
		if out != nil {
			out.Instances = append(out.Instances, ids)
		}
		for k, id := range ids {
			if !first {
				began = now()
			}
			m.Mask(mask, -1)
			took := now() - began
			began = now()
			refused := m.Accept(id) != nil
			accepted := now() - began
			if t.digests != nil {
				d.add(mask, m)
			}
			if first {
				took += t.compile[len(t.compile)-1]
				t.first = append(t.first, took)
				if out != nil {
					out.FirstNS = int64(took)
				}
				first = false
			} else {
				if took > slowMask {
					took = t.least(c, ids[:k], took)
				}
				out.token(took + accepted)
				t.tallyMask(took, c.name, k)
			}
			if refused {
				break
			}
		}
	}
	if t.digests != nil {
		fmt.Fprintf(t.digests, "%08x %d %s\n", d.masks.Sum32(), d.n, c.name)
	}
	if out == nil || first {
		return nil
	}
	return t.exported.add(out)
}

// slowMask is the time that no mask should take.
const slowMask = 2 * time.Millisecond

func (t *tally) tallyMask(took time.Duration, name string, token int) {
	t.masks = append(t.masks, took)
	if took > slowMask {
		t.say("slow", "%v mask %s token %d", took, name, token)
	}
}
