package main

import (
	"context"
	"errors"
	"strings"

	"bellbird/dialog"
	"bellbird/plugins"
	"bellbird/store"
)

// conversation is what plugins may do with chats and with the model. Private chats are there only for plugins that are
// aware of privacy.
func (p *powers) conversation(do map[string]plugins.Func) {
	if p.model != nil {
		do["llm_chat.chat"] = p.chat
	}
	if p.chats == nil {
		return
	}
	do["llm_chat.active_chat"] = func(ctx context.Context, c *plugins.Call) (any, error) { return p.named(ctx, c, "") }
	do["llm_chat.get_messages"] = func(ctx context.Context, c *plugins.Call) (any, error) {
		name, err := p.named(ctx, c, "chat")
		if err != nil {
			return nil, err
		}
		messages, err := p.chats.Messages(name)
		if err != nil {
			return nil, err
		}
		list := []any{}
		for _, m := range messages {
			list = append(list, map[string]any{"role": string(m.Role), "content": m.Content})
		}
		return list, nil
	}
	do["llm_chat.list_chats"] = func(ctx context.Context, c *plugins.Call) (any, error) {
		names, err := p.chats.Names()
		list := []any{}
		for _, name := range names {
			if _, err := p.mayUse(ctx, c, &name); err == nil {
				list = append(list, name)
			}
		}
		return list, err
	}
	do["llm_chat.create_chat"] = act(func(c *plugins.Call) error { return p.chats.Create(c.Text("name")) })
	do["llm_chat.activate_chat"] = p.onChat("name", func(name string, _ *plugins.Call) error { return p.chats.Activate(name) })
	do["llm_chat.clear_chat"] = p.onChat("name", func(name string, _ *plugins.Call) error { return p.chats.Clear(name) })
	do["llm_chat.rename_chat"] = p.onChat("old", func(old string, c *plugins.Call) error { return p.chats.Rename(old, c.Text("new")) })
}

// onChat is a power over the chat that an argument names.
func (p *powers) onChat(arg string, f func(name string, c *plugins.Call) error) plugins.Func {
	return func(ctx context.Context, c *plugins.Call) (any, error) {
		name, err := p.named(ctx, c, arg)
		if err != nil {
			return nil, err
		}
		return nil, f(name, c)
	}
}

// named is the chat that an argument names, or else the active one.
func (p *powers) named(ctx context.Context, c *plugins.Call, arg string) (string, error) {
	if c.Has(arg) {
		name := c.Text(arg)
		return p.mayUse(ctx, c, &name)
	}
	return p.mayUse(ctx, c, nil)
}

var errPrivate = errors.New("that chat is private, and the plugin doesn't say that it is aware of privacy")

func (p *powers) mayUse(ctx context.Context, c *plugins.Call, name *string) (string, error) {
	chat, private, err := p.chats.Private(ctx, name)
	switch {
	case c.Owner.Manifest.PrivacyAware:
		return chat, err
	case private:
		return "", errPrivate // also of one that isn't there: nothing is to be learnt about names
	}
	return chat, err
}

// chat asks the model something that has nothing to do with the turn. Given a key it returns at once, and the answer goes
// into the plugin's state when it is there.
func (p *powers) chat(ctx context.Context, c *plugins.Call) (any, error) {
	if !c.Has("save") {
		ctx, cancel := context.WithTimeout(ctx, chatWait)
		defer cancel()
		return p.generate(ctx, c.Text("text"))
	}
	if c.Owner.State == nil {
		return nil, errors.New("this plugin has no state to save it in")
	}
	return nil, p.later(c, "chat", 1, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, chatLater)
		defer cancel()
		answer, err := p.generate(ctx, c.Text("text"))
		if err != nil {
			return err
		}
		return c.Owner.State.Save(c.Text("save"), answer)
	})
}

func (p *powers) generate(ctx context.Context, text string) (string, error) {
	var b strings.Builder
	req := dialog.Request{Messages: []dialog.Message{{Role: dialog.User, Content: text}}}
	for delta, err := range p.model.Generate(ctx, req) {
		if err != nil {
			return "", err
		}
		if b.WriteString(delta.Text); b.Len() > maxAnswer {
			break
		}
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return strings.TrimSpace(b.String()), nil
}

// storedChats shows a store to the plugins.
type storedChats struct{ *store.Store }

var _ chats = storedChats{}

func (s storedChats) Names() ([]string, error) {
	list, err := s.Chats()
	names := make([]string, len(list))
	for i, info := range list {
		names[i] = info.Name
	}
	return names, err
}

func (s storedChats) Messages(name string) ([]dialog.Message, error) {
	chat, err := s.Chat(name)
	if err != nil {
		return nil, err
	}
	return chat.Messages(), nil
}
