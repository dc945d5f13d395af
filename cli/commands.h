/* commands.h -- every subcommand, as its file exports it. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/command.h"

extern const struct command command_replay;

#endif
