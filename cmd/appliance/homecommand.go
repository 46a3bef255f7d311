package main

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"bellbird/api"
	"bellbird/mqtt"
)

func mqttCommand(f *flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mqtt",
		Short: "Look after what Home Assistant sees of the appliance",
		Args:  onlyArgs(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "remove",
		Short: "Take the appliance out of Home Assistant, with all that the broker has kept of it",
		Args:  onlyArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.load()
			if err != nil {
				return err
			}
			if c.MQTT.Broker == "" {
				return usagef("no broker is configured: see docs/home-assistant.md")
			}
			err = c.API.dial().Do(cmd.Context(), http.MethodGet, "/api/plugins", nil, nil)
			if !errors.Is(err, api.ErrNotRunning) {
				return errors.New("the appliance is running, and would announce itself again: stop it first")
			}
			n, err := mqtt.Remove(cmd.Context(), c.MQTT)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d topics are emptied\n", n)
			return nil
		},
	})
	return cmd
}
