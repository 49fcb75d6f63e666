package cli

import (
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/spf13/cobra"
)

// argCompletions holds the completions of each argument of a command. The last entry applies to all further arguments;
// nothing completes to nothing.
var argCompletions = map[string][]cobra.CompletionFunc{
	"attach":   {modelNames, files(), nothing},
	"batch":    {files("jsonl"), nothing},
	"check":    {modelNames, nothing},
	"cp":       {modelNames, modelNames, nothing},
	"create":   {modelNames, folders},
	"delete":   {modelNames, nothing},
	"discover": {modelNames, nothing},
	"fit":      {modelOr(cobra.ShellCompDirectiveFilterDirs), nothing},
	"inspect":  {modelNames, nothing},
	"export":   {modelNames, folders, nothing},
	"extract":  {modelNames, folders},
	"login":    {nothing},
	"logout":   {nothing},
	"ls":       {modelNames},
	"man":      {folders, nothing},
	"pull":     {modelNames, nothing},
	"push":     {modelNames, modelNames, nothing},
	"quantize": {modelOr(cobra.ShellCompDirectiveFilterDirs), modelNames, types, nothing},
	"rm":       {modelNames},
	"run":      {modelNames, nothing},
	"search":   {nothing},
	"serve":    {modelNames},
	"show":     {modelNames, nothing},
	"sign":     {modelNames, nothing},
	"stop":     {modelNames, nothing},
	"tags":     {modelNames, nothing},
	"tag":      {modelNames, modelNames, nothing},
	"template": {modelOr(cobra.ShellCompDirectiveDefault), nothing},
	"tokenize": {modelOr(cobra.ShellCompDirectiveFilterDirs), nothing},
	"verify":   {modelNames, nothing},
	"worker":   {nothing},

	"calibrate": {modelNames, nothing},
	"warm":      {modelNames, nothing},
}

// flagCompletions holds the completions of flags by name, for all commands. Other flags complete to nothing.
var flagCompletions = map[string]cobra.CompletionFunc{
	"cache-dir":    folders,
	"api-key-file": files(),
	"as":           cobra.FixedCompletions(arch.Types(), cobra.ShellCompDirectiveNoFileComp),
	"ca-file":      files(),
	"cert-dir":     folders,
	"creds":        files(),
	"src-creds":    files(),
	"dest-creds":   files(),
	"calibration":  files("safetensors"),
	"rule-set": cobra.FixedCompletions([]string{string(recipe.RuleSet1), string(recipe.RuleSet2)},
		cobra.ShellCompDirectiveNoFileComp),
	"cpu-math":       cobra.FixedCompletions([]string{"exact", "fast"}, cobra.ShellCompDirectiveNoFileComp),
	"dequantize":     cobra.FixedCompletions([]string{"bf16", "f16", "f32"}, cobra.ShellCompDirectiveNoFileComp),
	"draft-quantize": types,
	"file":           files(),
	"flavour": cobra.FixedCompletions([]string{"cpu", "metal", "cuda12", "cuda13"},
		cobra.ShellCompDirectiveNoFileComp),
	"format":         cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp),
	"key":            files(),
	"model":          modelNames,
	"prompt-ids":     files(),
	"quantize":       types,
	"quantize-draft": types,
	"recipe":         files("json"),
	"reference":      files("safetensors"),
	"schema":         files("json"),
	"search-text":    files(),
	"token-file":     files(),
	"instance":       files("json"),
}

// AddCompletions adds completions to every command below root that has none of its own.
func AddCompletions(root *cobra.Command) {
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	for _, c := range root.Commands() {
		AddCompletions(c)
		if args := argCompletions[c.Name()]; args != nil && c.ValidArgsFunction == nil {
			c.ValidArgsFunction = func(c *cobra.Command, given []string, word string) ([]string, cobra.ShellCompDirective) {
				return args[min(len(given), len(args)-1)](c, given, word)
			}
		}
		for name, complete := range flagCompletions {
			if c.Flag(name) != nil {
				// This fails if the command has registered its own function for the flag, which then stays.
				_ = c.RegisterFlagCompletionFunc(name, complete)
			}
		}
	}
}

// modelNames completes names of models in the store, except those already given. It omits the tag "latest" until the
// word has a colon.
func modelNames(c *cobra.Command, given []string, word string) ([]string, cobra.ShellCompDirective) {
	store, err := ExistingStore()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	models, err := store.List(c.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	tags := strings.LastIndexByte(word, ':') > strings.LastIndexByte(word, '/')
	isGiven := map[manifest.Name]bool{}
	for _, arg := range given {
		if n, err := manifest.ParseName(arg); err == nil {
			isGiven[n] = true
		}
	}
	var names []string
	for _, m := range models {
		name := m.Name.String()
		if isGiven[m.Name] {
			continue
		}
		if !tags {
			name = strings.TrimSuffix(name, ":"+manifest.DefaultTag)
		}
		if strings.HasPrefix(name, word) {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// modelOr completes model names, or follows the directive if no model matches.
func modelOr(otherwise cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(c *cobra.Command, given []string, word string) ([]string, cobra.ShellCompDirective) {
		if names, directive := modelNames(c, given, word); len(names) > 0 {
			return names, directive
		}
		return nil, otherwise
	}
}

// files completes files with these extensions, or any file.
func files(extensions ...string) cobra.CompletionFunc {
	if len(extensions) == 0 {
		return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	}
	return cobra.FixedCompletions(extensions, cobra.ShellCompDirectiveFilterFileExt)
}

func folders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

func types(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var list []string
	for _, t := range quantize.Types() {
		list = append(list, t.String())
	}
	list = append(list, recipe.Source)
	return list, cobra.ShellCompDirectiveNoFileComp
}

func nothing(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveNoFileComp
}
