package cmd

import (
	"os"
	"strings"

	"github.com/ingotml/ingot/registry"
	"github.com/spf13/cobra"
)

// Registries that the operator of a server lists where its flags do not: host[:port],...
const (
	envInsecureRegistries = "INGOT_INSECURE_REGISTRIES"
	envPrivateRegistries  = "INGOT_PRIVATE_REGISTRIES"
)

// registryFlags list registries that requests may name although they are not public, or ask without checks.
type registryFlags struct {
	insecureRegistries, privateRegistries []string
}

func (f *registryFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.insecureRegistries, "insecure-registry", nil,
		"`host` that requests may ask with \"insecure\" (repeatable; default $"+envInsecureRegistries+")")
	c.Flags().StringArrayVar(&f.privateRegistries, "private-registry", nil,
		"`host` in a private network that requests may name (repeatable; default $"+envPrivateRegistries+")")
}

func (f registryFlags) registries() (insecure, private registry.Hosts, err error) {
	for _, list := range []struct {
		flag, env string
		given     []string
		to        *registry.Hosts
	}{
		{"insecure-registry", envInsecureRegistries, f.insecureRegistries, &insecure},
		{"private-registry", envPrivateRegistries, f.privateRegistries, &private},
	} {
		name, text := "--"+list.flag, strings.Join(list.given, ",")
		if len(list.given) == 0 {
			name, text = list.env, os.Getenv(list.env)
		}
		if *list.to, err = registry.ParseHosts(text); err != nil {
			return nil, nil, usagef("%s: %v", name, err)
		}
	}
	return insecure, private, nil
}
