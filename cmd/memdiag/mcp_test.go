package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// agent is a client of the SDK's that talks with memdiag mcp.
func agent(t *testing.T, root string, asked func(string) string) *mcp.ClientSession {
	t.Helper()
	t.Chdir(root)
	env := &environment{stdout: &sink{w: t.Output()}, talk: &talker{w: t.Output(), program: "memdiag"}, getenv: os.Getenv, now: time.Now}
	s, err := newToolServer(env, root)
	if err != nil {
		t.Fatal(err)
	}
	here, there := mcp.NewInMemoryTransports()
	if _, err := s.serve().Connect(t.Context(), here, nil); err != nil {
		t.Fatal(err)
	}
	options := &mcp.ClientOptions{}
	if asked != nil {
		options.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: asked(r.Params.Message)}, nil
		}
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, options).Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// call is the text of an answer, and whether it is an error.
func call(t *testing.T, session *mcp.ClientSession, name string, arguments map[string]any) (string, bool) {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		return err.Error(), true
	}
	text := result.Content[0].(*mcp.TextContent).Text
	if len(text) > 8<<10 {
		t.Errorf("%s answers with %d bytes", name, len(text))
	}
	return text, result.IsError
}

func TestAnAgentGetsWhatCommandsSay(t *testing.T) {
	root := t.TempDir()
	run := filepath.Join(root, "leaky")
	if code := runCommand(t, "record", "--workload", "L30", "--steps", "40", "--every", "5", "-o", run); code != exitFine {
		t.Fatal(code)
	}
	session := agent(t, root, nil)
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != 7 {
		t.Fatal(tools, err)
	}
	for _, tool := range tools.Tools {
		if asks := tool.Name == "record" || tool.Name == "doctor"; tool.Annotations.ReadOnlyHint == asks {
			t.Errorf("%s: read-only %v", tool.Name, !asks)
		}
	}
	for _, c := range []struct {
		tool      string
		arguments map[string]any
		fails     bool
		want      string
	}{
		{"diff", map[string]any{"run": "leaky"}, false, "exit code 0; next: lint"},
		{"diff", map[string]any{"run": run}, false, "leak"},
		{"show", map[string]any{"snapshot": "leaky/snapshot_40"}, false, "next: diff"},
		{"verify", map[string]any{"before": "leaky", "after": "leaky"}, false, "exit code 1"},
		{"explain", map[string]any{"cause": "graph-retained"}, false, "detach"},
		{"explain", map[string]any{"cause": "--help"}, true, "no cause"},
		{"diff", map[string]any{"run": "nowhere"}, true, "exit code 3"},
		{"diff", map[string]any{"run": "../"}, true, "lies outside of"},
		{"diff", map[string]any{"run": "/etc"}, true, "lies outside of"},
		{"diff", map[string]any{"run": "link/x"}, true, "lies outside of"},
		{"diff", map[string]any{"run": ""}, true, "a path is missing"},
		{"diff", map[string]any{"run": "a\x1b[2Jb"}, true, `\x1b`},
		{"diff", map[string]any{"folder": "leaky"}, true, "folder"},
		{"record", map[string]any{"command": []string{"touch", "ran"}, "out": "new"}, false, "call again with confirm set to true"},
		{"record", map[string]any{"command": []string{"touch", "ran"}, "out": "../new", "confirm": true}, true, "lies outside of"},
		{"record", map[string]any{"command": []string{}, "out": "new", "confirm": true}, true, "the command is missing"},
	} {
		if c.arguments["run"] == "link/x" {
			if err := os.Symlink("/etc", filepath.Join(root, "link")); err != nil {
				t.Fatal(err)
			}
		}
		text, fails := call(t, session, c.tool, c.arguments)
		if fails != c.fails || !strings.Contains(text, c.want) || fails && strings.Contains(text, "next: ") {
			t.Errorf("%s %v: error %v, %s", c.tool, c.arguments, fails, text)
		}
	}
	if _, err := os.Stat("ran"); err == nil {
		t.Error("a command ran unasked")
	}
	if text, fails := call(t, session, "record", map[string]any{"command": []string{"touch", "ran"}, "out": "new", "confirm": true}); fails || !strings.Contains(text, "exit code 0") {
		t.Errorf("%v %s", fails, text)
	}
	if _, err := os.Stat("ran"); err != nil {
		t.Error(err)
	}
}

func TestAUserIsAskedWhereTheAgentCanAsk(t *testing.T) {
	root := t.TempDir()
	reply, heard := "decline", ""
	session := agent(t, root, func(message string) string { heard = message; return reply })
	arguments := map[string]any{"command": []string{"touch", "ran"}, "out": "one"}
	if text, _ := call(t, session, "record", arguments); !strings.Contains(text, "the user declines") || !strings.Contains(heard, `"touch" "ran"`) {
		t.Errorf("%s, asked %q", text, heard)
	}
	reply = "accept"
	if text, fails := call(t, session, "record", arguments); fails {
		t.Error(text)
	}
	if _, err := os.Stat(filepath.Join(root, "ran")); err != nil {
		t.Error(err)
	}
}

func TestALongAnswerIsCut(t *testing.T) {
	text := cut(strings.Repeat(strings.Repeat("x", 99)+"\n", 200), "next: nothing")
	if len(text) > mostAnswer || !strings.Contains(text, "more lines)\n") || !strings.HasSuffix(text, "next: nothing") {
		t.Errorf("%d bytes: %s", len(text), text[len(text)-60:])
	}
}

// TestAPatchIsKeptWhole: what is left out of a long answer is what stands before it.
func TestAPatchIsKeptWhole(t *testing.T) {
	patch := "--- a/train.py\n+++ b/train.py\n@@ -1 +1,2 @@\n for x in data:\n+\tdel kept[:-1]\n"
	long := strings.Repeat("Analyse: "+strings.Repeat("x", 90)+"\n", 200)
	text := cut(long+"\n"+patch, "next: nothing")
	if len(text) > mostAnswer || !strings.Contains(text, "more lines)\n\n"+patch) {
		t.Errorf("%d bytes: %s", len(text), text[len(text)-200:])
	}
	large := patch + strings.Repeat("+"+strings.Repeat("y", 90)+"\n", 60)
	text = cut(long+"\nPatch 1 of 2: a\n\n"+patch+"\nPatch 2 of 2: b\n\n"+large, "next: nothing")
	if len(text) > mostAnswer || !strings.Contains(text, "Patch 1 of 2: a\n\n"+patch) || !strings.Contains(text, "Patch 2 of 2: b\n\n"+large) {
		t.Errorf("%d bytes: %s", len(text), text)
	}
	if text = cut(long+"\n"+patch+strings.Repeat("+z\n", 3000), "next: nothing"); len(text) > mostAnswer || !strings.Contains(text, "memdiag doctor --patch prints them") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

func TestAnAgentHearsWhatALongCallIsAt(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "test"}, nil)
	ticks := make(chan time.Time)
	mcp.AddTool(server, &mcp.Tool{Name: "wait"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		heard, stop := progress(ctx, r, ticks)
		defer stop()
		heard("running it as it is")
		ticks <- time.Now()
		return toolText("done"), nil, nil
	})
	here, there := mcp.NewInMemoryTransports()
	if _, err := server.Connect(t.Context(), here, nil); err != nil {
		t.Fatal(err)
	}
	said := make(chan *mcp.ProgressNotificationParams, 1000)
	client := mcp.NewClient(&mcp.Implementation{Name: "test"}, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
		select {
		case said <- r.Params:
		default:
		}
	}})
	session, err := client.Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	go func() {
		params := &mcp.CallToolParams{Name: "wait"}
		params.SetProgressToken("a")
		_, _ = session.CallTool(t.Context(), params)
	}()
	first, second := <-said, <-said
	if first.ProgressToken != "a" || first.Message != "running it as it is" || !regexp.MustCompile(`^running it as it is, \d+ s since the call$`).MatchString(second.Message) || second.Progress <= first.Progress {
		t.Errorf("%+v, %+v", first, second)
	}
}

// runCommand runs memdiag with its talk dropped.
func runCommand(t *testing.T, args ...string) int {
	t.Helper()
	return run(args, strings.NewReader(""), t.Output(), t.Output())
}
