package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/report"
)

func newMCPCommand(env *environment) *cobra.Command {
	var root string
	cmd := &cobra.Command{
		Use:     "mcp",
		GroupID: groupMore,
		Short:   "serve memdiag's commands to a coding agent, by the Model Context Protocol",
		Long: `Serves record, diff, show, explain, lint, verify and doctor as tools on standard input and
output. Answers are below 8 kB and end with the next step. record and doctor run a command, and
ask first; all others only read files. Files outside --root are refused.
More: ` + docsAddress + `agents.md`,
		Example: `  memdiag mcp
  memdiag mcp --root /work/project`,
		Args: takes(0, 0, "arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := newToolServer(env, root)
			if err != nil {
				return err
			}
			if err := s.serve().Run(cmd.Context(), &mcp.StdioTransport{}); cmd.Context().Err() == nil {
				return err
			}
			return nil // the agent has ended it
		},
	}
	cmd.Flags().StringVar(&root, "root", ".", "`DIR` below which files may be read, and commands run")
	return cmd
}

// toolServer answers an agent's calls with memdiag's own commands.
type toolServer struct {
	env  *environment
	root string // real, absolute
}

func newToolServer(env *environment, root string) (*toolServer, error) {
	root, err := filepath.Abs(root)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err == nil {
		err = os.Chdir(root) // commands resolve file names from here
	}
	if err != nil {
		return nil, badInput(err)
	}
	return &toolServer{env, root}, nil
}

// The arguments of the tools.
type (
	runArguments struct {
		Run string `json:"run" jsonschema:"folder of a recorded run"`
	}
	showArguments struct {
		Snapshot string `json:"snapshot" jsonschema:"a snapshot file, of memdiag's, PyTorch's or another profiler's"`
	}
	verifyArguments struct {
		Before string `json:"before" jsonschema:"folder of the run before the fix"`
		After  string `json:"after" jsonschema:"folder of the run after the fix"`
	}
	explainArguments struct {
		Cause string `json:"cause,omitempty" jsonschema:"id of a cause; all are listed without"`
	}
	recordArguments struct {
		Command []string `json:"command" jsonschema:"program and arguments, such as python train.py --steps 200"`
		Out     string   `json:"out" jsonschema:"new folder of the run, or of the runs"`
		Confirm bool     `json:"confirm,omitempty" jsonschema:"the user agrees that the command runs"`
	}
	doctorArguments struct {
		recordArguments
		Patch bool `json:"patch,omitempty" jsonschema:"make a patch of the likely line, and try it in a copy"`
	}
)

// instructions are for the agent, at the start of the session.
const instructions = `memdiag finds memory leaks of programs that train. Record a run (record), see what leaks (diff), ` +
	`see suspicious lines (lint), prove the cause and get a patch (doctor with patch), apply it, record again, and compare (verify).`

func (s *toolServer) serve() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "memdiag", Version: version()}, &mcp.ServerOptions{Instructions: instructions})
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true}
	mcp.AddTool(server, &mcp.Tool{Name: "diff", Description: "What leaks in a recorded run: line, rate, holder, cause and fix, the largest first.", Annotations: reads},
		func(ctx context.Context, r *mcp.CallToolRequest, a runArguments) (*mcp.CallToolResult, any, error) {
			return s.answer(ctx, r, "lint, or doctor, on what leaks", []string{"diff", "--top", "5"}, a.Run)
		})
	mcp.AddTool(server, &mcp.Tool{Name: "lint", Description: "Lines of a recorded program that look like a leak's cause, each with what was measured there.", Annotations: reads},
		func(ctx context.Context, r *mcp.CallToolRequest, a runArguments) (*mcp.CallToolResult, any, error) {
			return s.answer(ctx, r, "doctor proves which line it is", []string{"lint"}, a.Run)
		})
	mcp.AddTool(server, &mcp.Tool{Name: "show", Description: "What one snapshot holds, by call site.", Annotations: reads},
		func(ctx context.Context, r *mcp.CallToolRequest, a showArguments) (*mcp.CallToolResult, any, error) {
			return s.answer(ctx, r, "diff on the whole run tells what grows", []string{"show"}, a.Snapshot)
		})
	mcp.AddTool(server, &mcp.Tool{Name: "verify", Description: "Whether a fix worked: leaks, losses, step time and peaks of two runs.", Annotations: reads},
		func(ctx context.Context, r *mcp.CallToolRequest, a verifyArguments) (*mcp.CallToolResult, any, error) {
			return s.answer(ctx, r, "diff on the run after, if it is not fixed", []string{"verify"}, a.Before, a.After)
		})
	mcp.AddTool(server, &mcp.Tool{Name: "explain", Description: "What a cause is, how it looks, and its fix.", Annotations: reads},
		func(ctx context.Context, r *mcp.CallToolRequest, a explainArguments) (*mcp.CallToolResult, any, error) {
			args := []string{"explain"}
			if a.Cause != "" {
				args = append(args, "--", a.Cause)
			}
			return s.answer(ctx, r, "change the line that diff names", args)
		})
	writes := &mcp.ToolAnnotations{OpenWorldHint: new(true)}
	mcp.AddTool(server, &mcp.Tool{Name: "record", Description: "Runs a command and records what its memory does. It asks first.", Annotations: writes},
		func(ctx context.Context, r *mcp.CallToolRequest, a recordArguments) (*mcp.CallToolResult, any, error) {
			return s.start(ctx, r, a, "diff on "+a.Out, "record")
		})
	mcp.AddTool(server, &mcp.Tool{Name: "doctor", Description: "Proves by experiment why a Python command leaks: it runs three times or more. With patch, it makes and tries a patch. It asks first.", Annotations: writes},
		func(ctx context.Context, r *mcp.CallToolRequest, a doctorArguments) (*mcp.CallToolResult, any, error) {
			args := []string{"doctor"}
			if a.Patch {
				args = append(args, "--patch")
			}
			return s.start(ctx, r, a.recordArguments, "apply the patch, record, and verify "+filepath.Join(a.Out, "plain")+" with the new run", args...)
		})
	return server
}

// within is the path of a file, which must be below the root.
func (s *toolServer) within(name string) (string, error) {
	if name == "" {
		return "", errors.New("a path is missing")
	}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.root, path)
	}
	real, below := filepath.Clean(path), ""
	for { // a folder that does not exist yet has no links
		resolved, err := filepath.EvalSymlinks(real)
		if err == nil {
			real = filepath.Join(resolved, below)
			break
		}
		if filepath.Dir(real) == real {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		real, below = filepath.Dir(real), filepath.Join(filepath.Base(real), below)
	}
	if rest, err := filepath.Rel(s.root, real); err != nil || !filepath.IsLocal(rest) {
		return "", fmt.Errorf("%s lies outside of %s", name, s.root)
	}
	return real, nil
}

// start runs a command of the user, after the user agrees.
func (s *toolServer) start(ctx context.Context, r *mcp.CallToolRequest, a recordArguments, next string, args ...string) (*mcp.CallToolResult, any, error) {
	if len(a.Command) == 0 {
		return toolFailed(errors.New("the command is missing")), nil, nil
	}
	out, err := s.within(a.Out)
	if err != nil {
		return toolFailed(err), nil, nil
	}
	what := fmt.Sprintf("%s would run %q in %s", args[0], a.Command, s.root)
	if reply, ok := r.Params.InputResponses["run"].(*mcp.ElicitResult); ok && reply.Action != "accept" {
		return toolFailed(errors.New("the user declines; nothing was run")), nil, nil
	} else if !ok {
		if client := r.Session.InitializeParams(); client != nil && client.Capabilities != nil && client.Capabilities.Elicitation != nil {
			question := &mcp.ElicitParams{Message: report.Printable(what) + ". May it?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}}
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"run": question}}, nil, nil
		}
		if !a.Confirm { // only the program of an agent that cannot ask the user may set it
			return toolText(report.Printable(what) + ".\nnext: ask the user, and call again with confirm set to true"), nil, nil
		}
	}
	args = append(args, "-o", out, "--")
	return s.answer(ctx, r, next, append(args, a.Command...))
}

// lockedBuffer collects the output of a command and of memdiag.
type lockedBuffer struct {
	lock sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.text.String()
}

// mostAnswer is the most bytes of an answer.
const mostAnswer = 8000

// answer is the output of a memdiag command about files below the root.
func (s *toolServer) answer(ctx context.Context, r *mcp.CallToolRequest, next string, args []string, names ...string) (*mcp.CallToolResult, any, error) {
	for _, name := range names {
		path, err := s.within(name)
		if err != nil {
			return toolFailed(err), nil, nil
		}
		args = append(args, path)
	}
	ticker := time.NewTicker(alive)
	defer ticker.Stop()
	heard, stop := progress(ctx, r, ticker.C)
	defer stop()
	heard(args[0])
	var out, talk lockedBuffer
	inner := &environment{
		stdout: &sink{w: &out}, talk: &talker{w: &talk, now: time.Now, progressed: time.Now(), program: s.env.talk.program, heard: heard},
		within: func(name string) error { _, err := s.within(name); return err },
		getenv: s.env.getenv, now: s.env.now, child: streams{strings.NewReader(""), &out, &talk},
	}
	code := inner.conclude(ctx, inner.execute(ctx, args))
	text := out.String()
	if code != exitFine && code != exitLeak && code != exitInconclusive || text == "" {
		text += talk.String()
	}
	failed := code == exitUsage || code == exitBadInput || code == exitOwn
	end := fmt.Sprintf("exit code %d", code)
	if !failed { // else a hint has the next step
		end += "; next: " + next
	}
	result := toolText(cut(text, end))
	result.IsError = failed
	return result, nil, nil
}

func toolText(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func toolFailed(err error) *mcp.CallToolResult {
	result := toolText(report.Printable(err.Error()))
	result.IsError = true
	return result
}
