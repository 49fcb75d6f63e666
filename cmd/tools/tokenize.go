package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/input"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/convert/tokens"
	"github.com/ingotml/ingot/internal/limits/filekind"
	"github.com/ingotml/ingot/runtime/processor"
	"github.com/ingotml/ingot/safetensors"
	"github.com/ingotml/ingot/tokenizer"
	"github.com/ingotml/ingot/tokenizer/compiled"
	"github.com/spf13/cobra"
)

func tokenizeCommand(a *cli.App) *cobra.Command {
	var decode, special, chat bool
	c := &cobra.Command{
		Use:   "tokenize NAME|DIR",
		Short: "Convert text on standard input to token ids",
		Long: `Convert the text on standard input to token ids, and print them as a JSON array. The tokenizer is that of
a model, or of a folder with a tokenizer.json or a tokenizer.model.

Every byte counts, including a line feed at the end. Bytes that are not UTF-8 become U+FFFD. Special tokens
in the text are recognized. --special adds the tokens that the tokenizer puts around a text, such as BOS.`,
		Example: `  printf 'Once upon a time' | ingot tokenize mymodel
  echo '[1, 2, 3]' | ingot tokenize mymodel --decode
  echo '[{"role": "user", "content": "Hi"}]' | ingot tokenize mymodel --chat`,
		Args: cli.Between(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if chat && (decode || special) {
				return cli.Usagef("--chat cannot be combined with --decode or --special: " +
					"a chat template writes its own special tokens")
			}
			if decode && special {
				return cli.Usagef("--decode and --special cannot be combined: all ids are decoded")
			}
			tok, err := openTokenizer(c, args[0])
			if err != nil {
				return err
			}
			if decode {
				return detokenize(c.Context(), a, tok)
			}
			if chat {
				return tokenizeChat(a, c, tok, args[0])
			}
			return tokenize(c.Context(), a, tok, special)
		},
	}
	f := c.Flags()
	f.BoolVar(&decode, "decode", false, "convert a JSON array of token ids to text")
	f.BoolVar(&chat, "chat", false, "render JSON messages or template variables first")
	f.BoolVar(&special, "special", false, "add special tokens around the text, such as BOS")
	return c
}

func tokenize(ctx context.Context, a *cli.App, tok *tokenizer.Tokenizer, special bool) error {
	text, err := io.ReadAll(a.Stdin(ctx))
	if err != nil {
		return fmt.Errorf("read standard input: %w", err)
	}
	return printIDs(ctx, a, tok, string(text), special)
}

func printIDs(ctx context.Context, a *cli.App, tok *tokenizer.Tokenizer, text string, special bool) error {
	ids, err := tok.Encode(ctx, text, special)
	if err != nil {
		return err
	}
	if ids == nil {
		ids = []int32{}
	}
	return json.NewEncoder(a.Out).Encode(ids)
}

func detokenize(ctx context.Context, a *cli.App, tok *tokenizer.Tokenizer) error {
	ids, err := input.IDs(ctx, a, "-")
	if err != nil {
		return err
	}
	text, err := tok.Decode(ids, false)
	if err != nil {
		return err
	}
	_, err = io.WriteString(a.Out, text)
	return err
}

// Files of a tokenizer.
const (
	tokenizerJSON   = "tokenizer.json"
	tokenizerModel  = "tokenizer.model"
	tokenizerConfig = "tokenizer_config.json"
)

// maxTokenizer bounds each tokenizer file in bytes. The largest published ones have about 35 MB.
const maxTokenizer = 256 << 20

// openTokenizer loads the tokenizer of a folder, or else of a model of the store.
func openTokenizer(c *cobra.Command, arg string) (*tokenizer.Tokenizer, error) {
	if info, err := os.Stat(arg); err == nil && info.IsDir() {
		return folderTokenizer(arg)
	}
	store, entry, err := models.Resolve(c, arg)
	if err != nil {
		return nil, err
	}
	tok, err := processor.Files{Store: store, Image: entry.Image}.Tokenizer()
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", arg, err)
	case tok == nil:
		return nil, fmt.Errorf("%s has neither %s nor %s", arg, tokenizerJSON, tokenizerModel)
	}
	return tok, nil
}

// folderTokenizer loads the tokenizer of a checkpoint's folder, from whatever files it is in.
func folderTokenizer(dir string) (*tokenizer.Tokenizer, error) {
	made, files := map[string][]byte{}, safetensors.LinkedDir(dir) // nothing of it is kept
	if _, err := files.Stat(tokenizerJSON); errors.Is(err, fs.ErrNotExist) {
		entries, err := files.ReadDir(".")
		if err != nil {
			return nil, err
		}
		folder := tokens.Folder{}
		for _, e := range entries {
			if tokens.Needs(e.Name()) && !e.IsDir() {
				if folder[e.Name()], err = readIn(files, e.Name()); err != nil {
					return nil, err
				}
			}
		}
		m, err := tokens.Make(folder)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		if m != nil {
			made[tokenizerJSON] = m.Tokenizer
		}
		if m != nil && m.Settings != nil {
			made[tokenizerConfig] = m.Settings
		}
	}
	return loadTokenizer(dir, func(name string) ([]byte, error) {
		if data, ok := made[name]; ok {
			return data, nil
		}
		return readIn(files, name)
	})
}

// loadTokenizer loads tokenizer.json, or else tokenizer.model. read returns fs.ErrNotExist for a missing file.
func loadTokenizer(from string, read func(name string) ([]byte, error)) (*tokenizer.Tokenizer, error) {
	config, err := read(tokenizerConfig)
	if errors.Is(err, fs.ErrNotExist) {
		config, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	config, err = tokenizer.Settings(config, func(name string) ([]byte, error) {
		data, err := read(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return data, err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	for _, kind := range []struct {
		name string
		load func(string, string, func() ([]byte, error), []byte) (*tokenizer.Tokenizer, error)
	}{{tokenizerJSON, compiled.Load}, {tokenizerModel, compiled.LoadSentencePiece}} {
		file, err := read(kind.name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		same := func() ([]byte, error) { return file, nil }
		tok, err := kind.load(compiled.Dir(), compiled.Digest(file), same, config)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", from, err)
		}
		return tok, nil
	}
	return nil, fmt.Errorf("%s has neither %s nor %s", from, tokenizerJSON, tokenizerModel)
}

// readIn reads a file of a checkpoint's folder.
func readIn(folder safetensors.Folder, name string) ([]byte, error) {
	path := folder.Path(name)
	f, err := folder.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxTokenizer+1))
	if err == nil && len(b) > maxTokenizer {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxTokenizer)
	}
	if found := filekind.Of(b, int64(len(b))); err == nil && found.Stray() && found.Kind != filekind.Empty {
		err = fmt.Errorf("%s: %s", path, found.Wrong())
	}
	return b, err
}
