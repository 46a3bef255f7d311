package worker

import (
	"context"

	"bellbird/plugins"
)

var _ plugins.Toolbox = (*unit)(nil)

// Tools asks the worker which tools the file has.
func (u *unit) Tools(ctx context.Context) ([]map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, u.host.o.LoadTime)
	defer cancel()
	p, err := u.host.process(ctx)
	if err != nil {
		return nil, err
	}
	m, err := p.call(ctx, message{Op: opTools, ID: u.host.id(), Unit: u.id}, nil)
	if err != nil {
		return nil, err
	}
	schemas := make([]map[string]any, len(m.Args))
	for i, v := range m.Args {
		schemas[i], _ = v.(map[string]any) // else it has no name, and is refused
	}
	return schemas, nil
}

// Execute runs a tool in the worker. When ctx ends it is treated like a handler that misses its deadline.
func (u *unit) Execute(ctx context.Context, name string, args map[string]any) (text string, ok bool, err error) {
	p, err := u.ready()
	if err != nil {
		return "", false, err
	}
	m, err := p.call(ctx, message{Op: opExecute, ID: u.host.id(), Unit: u.id, Key: name, Kwargs: args}, nil)
	if err != nil {
		return "", false, err
	}
	text, _ = m.Value.(string)
	return text, m.Found, nil
}
