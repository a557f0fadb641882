// Reads boards as Grafana's own types have them, and says what those do not know or miss:
// board-check FILE…
package main

import (
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// check returns what is wrong with the board of a file, nil where nothing is.
func check(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	board := dashboard.Dashboard{}
	// What it returns without an error is an empty list of them, which is not nil.
	if err := board.UnmarshalJSONStrict(text); err != nil && err.Error() != "" {
		return err
	}
	if len(board.Panels) == 0 {
		return fmt.Errorf("it has no panel")
	}
	return board.Validate()
}

func main() {
	plugins.RegisterDefaultPlugins()
	wrong := false
	for _, name := range os.Args[1:] {
		if err := check(name); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			wrong = true
		}
	}
	if wrong {
		os.Exit(1)
	}
}
