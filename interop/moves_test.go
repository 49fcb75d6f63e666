package interop

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMoves: a model of 60 MB, with blobs that take several chunks and parts, is pushed, pulled and copied with each
// kind of registry. Each of these is killed three times at random moments, and run again. crane reads every blob of the
// copies. A signature travels along.
func TestMoves(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	source := largeCheckpoint(t)
	maker := newUser(t)
	digest := maker.ingot("create", "model", source, "-q", "source")
	_, digest, _ = strings.Cut(digest, "@")
	private, public := keyPair(t, "ed25519")
	other := startDistribution(t, "") + "/moved"
	eachRegistry(t, func(t *testing.T, host string) {
		name := host + "/team/model:v1"
		maker := &user{t: t, home: maker.home}
		again := func(u *user, want string, args ...string) {
			t.Helper()
			at := u.killed(3, args...)
			out, errs, err := u.try("", ingot, args...)
			if err != nil || out != want {
				t.Fatalf("ingot %s, after kills at %v: %q, want %q: %v\n%s", strings.Join(args, " "), at, out, want, err, errs)
			}
		}
		maker.ingot("sign", "model", "--key", private, "--as", name)
		again(maker, digest, "push", "model", name)
		maker.run("crane", "validate", "--remote", name)

		reader := newUser(t)
		again(reader, digest, "pull", name, "--require-signature", "--key", public)
		reader.ingot("fsck")
		reader.ingot("verify", name, "--key", public)
		if left := reader.unfinished(); len(left) > 0 {
			t.Errorf("the pull has left %v", left)
		}

		copier := newUser(t)
		to := other + "/" + strings.ToLower(filepath.Base(t.Name())) + ":v1"
		again(copier, to+"@"+digest, "cp", name, to)
		copier.run("crane", "validate", "--remote", to)
		back := host + "/team/back:v1"
		again(copier, back+"@"+digest, "cp", to, back)
		copier.run("crane", "validate", "--remote", back)
		equal(t, "pulled digest of what came back", copier.ingot("pull", back), digest)
		copier.ingot("verify", back, "--key", public, "--signed-identity", "exactReference="+name)
	})
}

// killed starts ingot some times and kills it after random parts of the time that a whole run may take. It returns
// these times. A run may end before.
func (u *user) killed(times int, args ...string) (at []time.Duration) {
	for range times {
		at = append(at, rand.N(500*time.Millisecond))
		c := exec.Command(ingot, args...)
		c.Env, c.Dir = u.env(), u.home
		if err := c.Start(); err != nil {
			u.t.Fatal(err)
		}
		timer := time.AfterFunc(at[len(at)-1], func() { c.Process.Kill() })
		c.Wait()
		timer.Stop()
	}
	return at
}

// unfinished lists the partial data of the user's store.
func (u *user) unfinished() []string {
	files, err := filepath.Glob(filepath.Join(u.store(), "ingest", "*"))
	if err != nil {
		u.t.Fatal(err)
	}
	return files
}

// largeCheckpoint writes a checkpoint of 60 MB, and returns its folder: an embedding of 24 MB, which no blob of 16 MiB
// holds, and a few layers. Its numbers are small and random.
func largeCheckpoint(t *testing.T) string {
	t.Helper()
	const vocab, hidden, inner, layers = 12288, 1024, 2048, 2
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "config.json"), `{"model_type": "llama", "architectures": ["LlamaForCausalLM"],
		"vocab_size": 12288, "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 2,
		"num_attention_heads": 8, "num_key_value_heads": 8, "max_position_embeddings": 512, "rms_norm_eps": 1e-5,
		"tie_word_embeddings": true, "torch_dtype": "bfloat16"}`)
	type tensor struct {
		DType   string   `json:"dtype"`
		Shape   []int    `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	head, size := map[string]tensor{}, int64(0)
	add := func(name string, shape ...int) {
		n := int64(2)
		for _, d := range shape {
			n *= int64(d)
		}
		head[name] = tensor{"BF16", shape, [2]int64{size, size + n}}
		size += n
	}
	add("model.embed_tokens.weight", vocab, hidden)
	add("model.norm.weight", hidden)
	for _, layer := range []string{"model.layers.0.", "model.layers.1."} {
		for _, name := range []string{"q", "k", "v", "o"} {
			add(layer+"self_attn."+name+"_proj.weight", hidden, hidden)
		}
		add(layer+"mlp.gate_proj.weight", inner, hidden)
		add(layer+"mlp.up_proj.weight", inner, hidden)
		add(layer+"mlp.down_proj.weight", hidden, inner)
		add(layer+"input_layernorm.weight", hidden)
		add(layer+"post_attention_layernorm.weight", hidden)
	}
	text, err := json.Marshal(head)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, size)
	rand.NewChaCha8([32]byte{1}).Read(data)
	for i := 1; i < len(data); i += 2 {
		data[i] = data[i]&0x80 | 0x3c // between 0.0078 and 0.03
	}
	var b bytes.Buffer
	binary.Write(&b, binary.LittleEndian, uint64(len(text)))
	b.Write(text)
	b.Write(data)
	if err := os.WriteFile(filepath.Join(dir, "model.safetensors"), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}
