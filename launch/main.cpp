// The `vckpt` command: arguments in, exit code out. What a command does stands in its own file.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <string_view>
#include <vector>

#include "launch/command.h"
#include "launch/drill.h"
#include "launch/explain.h"
#include "launch/export.h"
#include "launch/ls.h"
#include "launch/plan.h"
#include "launch/run.h"
#include "launch/verify.h"
#include "launch/wait.h"

namespace {

using namespace vckpt;
using namespace vckpt::launch;

// A subcommand and what runs it.
struct Command {
  CLI::App* app = nullptr;
  std::function<Result<int>()> run;
};

template <typename Arguments, typename Run>
Command command(CLI::App* app, std::shared_ptr<Arguments> arguments, Run run) {
  return {app, [arguments, run] { return run(*arguments); }};
}

// `program`: what stands behind `--`, taken from the command line before CLI11 can read any of it.
Command add_run(CLI::App& vckpt, std::vector<std::string> program) {
  auto* app = vckpt.add_subcommand("run", "a coordinator and N local ranks of a program");
  auto arguments = std::make_shared<RunArguments>();
  app->add_option("-n,--ranks", arguments->ranks, "how many ranks")->required();
  app->add_option("--root", arguments->root, "where checkpoints are")->required()->envname("VCKPT_ROOT");
  app->add_option("--run", arguments->run, "name of the run");
  app->add_option("--deadline", arguments->deadline_s, "a wait ends when nothing has moved for so many seconds")
      ->check(CLI::PositiveNumber);
  app->add_option("--grace", arguments->grace_s,
                  "seconds for the others to end by themselves after a first failure; default: deadline + 5")
      ->check(CLI::PositiveNumber);
  app->add_flag("--restart-coordinator", arguments->restart_coordinator, "start it again when it dies");
  app->footer("The program stands behind --: vckpt run -n N --root ROOT -- PROGRAM ARGUMENTS");
  return command(app, arguments, [program = std::move(program)](RunArguments& a) {
    a.program = program;
    return run(a, std::cout, std::cerr);
  });
}

Command add_drill(CLI::App& vckpt) {
  auto* app = vckpt.add_subcommand("drill", "one rank that saves or loads a model, and checks every byte");
  auto arguments = std::make_shared<DrillArguments>();
  app->add_option("what", arguments->what, "save or load")->required();
  app->add_option("--root", arguments->root, "where checkpoints are")->envname("VCKPT_ROOT");
  app->add_option("--model", arguments->model, "llama:SIZE, or .safetensors files")->required();
  app->add_option("--layout", arguments->layout, "tp=2,dp=2,pp=1,cp=1,ep=1,fsdp=1,zero=0")->required();
  app->add_option("--optimizer", arguments->optimizer, "adam or none");
  app->add_option("--step", arguments->step, "step to save (default 1), or to load (default: the newest)");
  app->add_option("--saves", arguments->saves,
                  "how many, one after another: each a step later, each told by every rank")
      ->check(CLI::PositiveNumber);
  app->add_option("--failures-max", arguments->failures_max, "so many saves in a row may fail before it gives up");
  app->add_option("--staging-bytes", arguments->staging_bytes,
                  "staging memory of this rank; default: its share of VCKPT_STAGING_BYTES");
  app->add_option("--deadline", arguments->deadline_s, "a wait ends when nothing has moved for so many seconds")
      ->check(CLI::PositiveNumber);
  app->add_flag("--verify", arguments->verify, "compare every byte that was loaded; after a save, load it first");
  app->add_option(
      "--die", arguments->die,
      "RANK@MOMENT: that rank kills itself; moments: call (others save, it does not), staged (after its copy)");
  app->add_option("--report", arguments->report, "write the report as JSON");
  app->add_flag("--json", arguments->json, "one JSON document on stdout");
  return command(app, arguments, [](const DrillArguments& a) { return drill(a, std::cout, std::cerr); });
}

Command add_plan(CLI::App& vckpt) {
  auto* app = vckpt.add_subcommand("plan", "what a save, and a load into another layout, would do");
  auto arguments = std::make_shared<PlanArguments>();
  app->add_option("--model", arguments->model, "llama:SIZE, or .safetensors files")->required();
  app->add_option("--layout", arguments->layout, "tp=2,dp=2,pp=1,cp=1,ep=1,fsdp=1,zero=0")->required();
  app->add_option("--to", arguments->to, "layout that loads");
  app->add_option("--optimizer", arguments->optimizer, "adam or none");
  app->add_option("--staging-bytes", arguments->staging_bytes, "staging memory of every rank that loads");
  app->add_flag("--json", arguments->json, "one JSON document on stdout");
  return command(app, arguments, [](const PlanArguments& a) { return plan(a, std::cout); });
}

Command add_ls(CLI::App& vckpt) {
  auto* app = vckpt.add_subcommand("ls", "committed checkpoints, newest last");
  auto arguments = std::make_shared<LsArguments>();
  app->add_option("root", arguments->root, "ROOT")->required();
  app->add_flag("--json", arguments->json, "one JSON document on stdout");
  return command(app, arguments, [](const LsArguments& a) { return ls(a, std::cout); });
}

Command add_inspect(CLI::App& vckpt) {
  auto* app = vckpt.add_subcommand("inspect", "tensors with dtype, shape and extents");
  auto arguments = std::make_shared<InspectArguments>();
  app->add_option("checkpoint", arguments->checkpoint, "ROOT, ROOT@STEP or ROOT@ID")->required();
  app->add_option("pattern", arguments->pattern, "glob over names");
  app->add_flag("--json", arguments->json, "one JSON document on stdout");
  return command(app, arguments, [](const InspectArguments& a) { return inspect(a, std::cout); });
}

Command add_verify(CLI::App& vckpt) {
  auto* app = vckpt.add_subcommand("verify", "is all that was committed still there, and unchanged?");
  auto arguments = std::make_shared<VerifyArguments>();
  app->add_option("checkpoint", arguments->checkpoint, "ROOT, ROOT@STEP or ROOT@ID")->required();
  app->add_flag("--deep", arguments->deep, "every byte against its digest");
  app->add_flag("--json", arguments->json, "one JSON document on stdout");
  return command(app, arguments, [](const VerifyArguments& a) { return verify(a, std::cout); });
}

Command add_export(CLI::App& vckpt) {
  auto* app = vckpt.add_subcommand("export", "whole tensors, as the safetensors files that others read");
  auto arguments = std::make_shared<ExportArguments>();
  app->add_option("checkpoint", arguments->checkpoint, "ROOT, ROOT@STEP or ROOT@ID")->required();
  app->add_option("out", arguments->target, "NAME.safetensors, or a folder to make")->required();
  app->add_option("--section", arguments->section, "default: model, or the only one");
  app->add_option("--shard-bytes", arguments->shard_bytes, "data in one file of a folder");
  app->add_flag("--json", arguments->json, "one JSON document on stdout");
  return command(app, arguments, [](const ExportArguments& a) { return export_checkpoint(a, std::cout); });
}

Command add_wait(CLI::App& vckpt) {
  auto* app = vckpt.add_subcommand("wait", "blocks until a newer commit");
  auto arguments = std::make_shared<WaitArguments>();
  app->add_option("root", arguments->root, "ROOT")->required();
  app->add_option("--after", arguments->after, "until the newest has a larger step; default: until there is another");
  app->add_option("--timeout", arguments->timeout_s, "give up after so many seconds; default: never")
      ->check(CLI::PositiveNumber);
  app->add_flag("--json", arguments->json, "one JSON document on stdout");
  return command(app, arguments, [](const WaitArguments& a) { return wait(a, std::cout); });
}

Command add_explain(CLI::App& vckpt) {
  auto* app = vckpt.add_subcommand("explain", "what became of an attempt at a save, and why");
  auto arguments = std::make_shared<ExplainArguments>();
  app->add_option("attempt", arguments->attempt, "ROOT@STEP, ROOT@ID, or ROOT for the last one")->required();
  app->add_flag("--json", arguments->json, "one JSON document on stdout");
  return command(app, arguments, [](const ExplainArguments& a) { return explain(a, std::cout); });
}

int run_command(const Command& command) {
  try {
    const auto done = command.run();
    if (done) return *done;
    std::cerr << error_line("vckpt " + command.app->get_name(), done.error()) << std::endl;
    return exit_code(done.error().code);
  } catch (const std::bad_alloc&) {
    std::cerr << error_line("vckpt " + command.app->get_name(), exhausted("out of memory")) << std::endl;
    return exit_code(Code::exhausted);
  } catch (const std::exception& error) {
    std::cerr << error_line("vckpt " + command.app->get_name(), internal(error.what())) << std::endl;
    return exit_code(Code::internal);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto end = std::find(argv, argv + argc, std::string_view("--"));
  std::vector<std::string> program;
  if (end != argv + argc) program.assign(end + 1, argv + argc);
  CLI::App vckpt("vckpt: checkpoints for large training jobs", "vckpt");
  vckpt.require_subcommand(1);
  const std::vector<Command> commands = {add_run(vckpt, std::move(program)),
                                         add_drill(vckpt),
                                         add_plan(vckpt),
                                         add_ls(vckpt),
                                         add_inspect(vckpt),
                                         add_verify(vckpt),
                                         add_export(vckpt),
                                         add_wait(vckpt),
                                         add_explain(vckpt)};
  try {
    vckpt.parse(static_cast<int>(end - argv), argv);
  } catch (const CLI::CallForHelp& help) {
    return vckpt.exit(help);
  } catch (const CLI::ParseError& error) {
    auto what = std::string(error.what());
    if (vckpt.get_subcommands().empty() && end - argv > 1) what = "there is no command '" + std::string(argv[1]) + "'";
    std::cerr << error_line("vckpt usage", invalid(what + "; see vckpt --help")) << std::endl;
    return exit_usage;
  }
  for (const auto& command : commands) {
    if (command.app->parsed()) return run_command(command);
  }
  return exit_usage;
}
