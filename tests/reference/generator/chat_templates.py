"""The texts of tokenizers::ChatTemplate::jinja() for each tokenizer of the conversations, by template."""

WRITTEN = {
    "byte_level": {
        "chatml": (
            "{%- if messages[0]['role'] == 'system' %}\n"
            '{%- set system = "<|im_start|>system\\n" + messages[0][\'content\'] + "<|im_end|>\\n" %}\n'
            '{%- set turns = messages[1:] %}\n'
            '{%- else %}\n'
            '{%- set system = "" %}\n'
            '{%- set turns = messages %}\n'
            '{%- endif %}\n'
            '{{- system }}\n'
            '{%- for message in turns %}\n'
            "{%- if message['role'] == 'user' %}\n"
            '{{- "<|im_start|>user\\n" + message[\'content\'] + "<|im_end|>\\n" }}\n'
            "{%- elif message['role'] == 'assistant' %}\n"
            '{{- "<|im_start|>assistant\\n" + message[\'content\'] + "<|im_end|>\\n" }}\n'
            '{%- else %}\n'
            "{{- raise_exception('a message is of the system, the user or the assistant, and the system speaks first') }}\n"
            '{%- endif %}\n'
            '{%- endfor %}\n'
            '{%- if add_generation_prompt %}\n'
            '{{- "<|im_start|>assistant\\n" }}\n'
            '{%- endif %}\n'
        ),
        "llama3": (
            "{%- if messages[0]['role'] == 'system' %}\n"
            '{%- set system = "<|start_header_id|>system<|end_header_id|>\\n\\n" + messages[0][\'content\'] | trim + "<|eot_id|>" %}\n'
            '{%- set turns = messages[1:] %}\n'
            '{%- else %}\n'
            '{%- set system = "" %}\n'
            '{%- set turns = messages %}\n'
            '{%- endif %}\n'
            '{{- "<|begin_of_text|>" + system }}\n'
            '{%- for message in turns %}\n'
            "{%- if message['role'] == 'user' %}\n"
            '{{- "<|start_header_id|>user<|end_header_id|>\\n\\n" + message[\'content\'] | trim + "<|eot_id|>" }}\n'
            "{%- elif message['role'] == 'assistant' %}\n"
            '{{- "<|start_header_id|>assistant<|end_header_id|>\\n\\n" + message[\'content\'] | trim + "<|eot_id|>" }}\n'
            '{%- else %}\n'
            "{{- raise_exception('a message is of the system, the user or the assistant, and the system speaks first') }}\n"
            '{%- endif %}\n'
            '{%- endfor %}\n'
            '{%- if add_generation_prompt %}\n'
            '{{- "<|start_header_id|>assistant<|end_header_id|>\\n\\n" }}\n'
            '{%- endif %}\n'
        ),
        "zephyr": (
            "{%- if messages[0]['role'] == 'system' %}\n"
            '{%- set system = "<|system|>\\n" + messages[0][\'content\'] + "<|endoftext|>\\n" %}\n'
            '{%- set turns = messages[1:] %}\n'
            '{%- else %}\n'
            '{%- set system = "" %}\n'
            '{%- set turns = messages %}\n'
            '{%- endif %}\n'
            '{{- system }}\n'
            '{%- for message in turns %}\n'
            "{%- if message['role'] == 'user' %}\n"
            '{{- "<|user|>\\n" + message[\'content\'] + "<|endoftext|>\\n" }}\n'
            "{%- elif message['role'] == 'assistant' %}\n"
            '{{- "<|assistant|>\\n" + message[\'content\'] + "<|endoftext|>\\n" }}\n'
            '{%- else %}\n'
            "{{- raise_exception('a message is of the system, the user or the assistant, and the system speaks first') }}\n"
            '{%- endif %}\n'
            '{%- endfor %}\n'
            '{%- if add_generation_prompt %}\n'
            '{{- "<|assistant|>\\n" }}\n'
            '{%- endif %}\n'
        ),
        "alpaca": (
            "{%- if messages[0]['role'] == 'system' %}\n"
            '{%- set system = "" + messages[0][\'content\'] + "" %}\n'
            '{%- set turns = messages[1:] %}\n'
            '{%- else %}\n'
            '{%- set system = "Below is an instruction that describes a task. Write a response that appropriately completes the request." %}\n'
            '{%- set turns = messages %}\n'
            '{%- endif %}\n'
            '{{- "<|begin_of_text|>" + system }}\n'
            '{%- for message in turns %}\n'
            "{%- if message['role'] == 'user' %}\n"
            '{{- "\\n\\n### Instruction:\\n" + message[\'content\'] }}\n'
            "{%- elif message['role'] == 'assistant' %}\n"
            '{{- "\\n\\n### Response:\\n" + message[\'content\'] + "<|endoftext|>" }}\n'
            '{%- else %}\n'
            "{{- raise_exception('a message is of the system, the user or the assistant, and the system speaks first') }}\n"
            '{%- endif %}\n'
            '{%- endfor %}\n'
            '{%- if add_generation_prompt %}\n'
            '{{- "\\n\\n### Response:\\n" }}\n'
            '{%- endif %}\n'
        ),
        "plain": (
            "{%- if messages[0]['role'] == 'system' %}\n"
            '{%- set system = "" + messages[0][\'content\'] + "" %}\n'
            '{%- set turns = messages[1:] %}\n'
            '{%- else %}\n'
            '{%- set system = "" %}\n'
            '{%- set turns = messages %}\n'
            '{%- endif %}\n'
            '{{- "<|begin_of_text|>" + system }}\n'
            '{%- for message in turns %}\n'
            "{%- if message['role'] == 'user' %}\n"
            "{{- message['content'] }}\n"
            "{%- elif message['role'] == 'assistant' %}\n"
            '{{- message[\'content\'] + "<|endoftext|>" }}\n'
            '{%- else %}\n'
            "{{- raise_exception('a message is of the system, the user or the assistant, and the system speaks first') }}\n"
            '{%- endif %}\n'
            '{%- endfor %}\n'
        ),
    },
    "prepending": {
        "llama2": (
            "{%- if messages[0]['role'] == 'system' %}\n"
            '{%- set system = "<<SYS>>\\n" + messages[0][\'content\'] + "\\n<</SYS>>\\n\\n" %}\n'
            '{%- set turns = messages[1:] %}\n'
            '{%- else %}\n'
            '{%- set system = "" %}\n'
            '{%- set turns = messages %}\n'
            '{%- endif %}\n'
            '{%- for message in turns %}\n'
            "{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}\n"
            "{{- raise_exception('user and assistant take turns, and the user begins') }}\n"
            '{%- endif %}\n'
            "{%- if message['role'] == 'user' %}\n"
            '{{- "<s>[INST] " + ((system if loop.first else \'\') + message[\'content\']) | trim + " [/INST]" }}\n'
            "{%- elif message['role'] == 'assistant' %}\n"
            '{{- " " + message[\'content\'] | trim + " </s>" }}\n'
            '{%- else %}\n'
            "{{- raise_exception('a message is of the system, the user or the assistant, and the system speaks first') }}\n"
            '{%- endif %}\n'
            '{%- endfor %}\n'
        ),
        "mistral": (
            "{%- if messages[0]['role'] == 'system' %}\n"
            '{%- set system = "" + messages[0][\'content\'] + "\\n\\n" %}\n'
            '{%- set turns = messages[1:] %}\n'
            '{%- else %}\n'
            '{%- set system = "" %}\n'
            '{%- set turns = messages %}\n'
            '{%- endif %}\n'
            '{{- "<s>" }}\n'
            '{%- for message in turns %}\n'
            "{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}\n"
            "{{- raise_exception('user and assistant take turns, and the user begins') }}\n"
            '{%- endif %}\n'
            "{%- if message['role'] == 'user' %}\n"
            '{{- "[INST] " + ((system if loop.first else \'\') + message[\'content\']) + " [/INST]" }}\n'
            "{%- elif message['role'] == 'assistant' %}\n"
            '{{- message[\'content\'] + "</s>" }}\n'
            '{%- else %}\n'
            "{{- raise_exception('a message is of the system, the user or the assistant, and the system speaks first') }}\n"
            '{%- endif %}\n'
            '{%- endfor %}\n'
        ),
        "zephyr": (
            "{%- if messages[0]['role'] == 'system' %}\n"
            '{%- set system = "<|system|>\\n" + messages[0][\'content\'] + "</s>\\n" %}\n'
            '{%- set turns = messages[1:] %}\n'
            '{%- else %}\n'
            '{%- set system = "" %}\n'
            '{%- set turns = messages %}\n'
            '{%- endif %}\n'
            '{{- system }}\n'
            '{%- for message in turns %}\n'
            "{%- if message['role'] == 'user' %}\n"
            '{{- "<|user|>\\n" + message[\'content\'] + "</s>\\n" }}\n'
            "{%- elif message['role'] == 'assistant' %}\n"
            '{{- "<|assistant|>\\n" + message[\'content\'] + "</s>\\n" }}\n'
            '{%- else %}\n'
            "{{- raise_exception('a message is of the system, the user or the assistant, and the system speaks first') }}\n"
            '{%- endif %}\n'
            '{%- endfor %}\n'
            '{%- if add_generation_prompt %}\n'
            '{{- "<|assistant|>\\n" }}\n'
            '{%- endif %}\n'
        ),
        "alpaca": (
            "{%- if messages[0]['role'] == 'system' %}\n"
            '{%- set system = "" + messages[0][\'content\'] + "" %}\n'
            '{%- set turns = messages[1:] %}\n'
            '{%- else %}\n'
            '{%- set system = "Below is an instruction that describes a task. Write a response that appropriately completes the request." %}\n'
            '{%- set turns = messages %}\n'
            '{%- endif %}\n'
            '{{- system }}\n'
            '{%- for message in turns %}\n'
            "{%- if message['role'] == 'user' %}\n"
            '{{- "\\n\\n### Instruction:\\n" + message[\'content\'] }}\n'
            "{%- elif message['role'] == 'assistant' %}\n"
            '{{- "\\n\\n### Response:\\n" + message[\'content\'] + "</s>" }}\n'
            '{%- else %}\n'
            "{{- raise_exception('a message is of the system, the user or the assistant, and the system speaks first') }}\n"
            '{%- endif %}\n'
            '{%- endfor %}\n'
            '{%- if add_generation_prompt %}\n'
            '{{- "\\n\\n### Response:\\n" }}\n'
            '{%- endif %}\n'
        ),
        "plain": (
            "{%- if messages[0]['role'] == 'system' %}\n"
            '{%- set system = "" + messages[0][\'content\'] + "" %}\n'
            '{%- set turns = messages[1:] %}\n'
            '{%- else %}\n'
            '{%- set system = "" %}\n'
            '{%- set turns = messages %}\n'
            '{%- endif %}\n'
            '{{- system }}\n'
            '{%- for message in turns %}\n'
            "{%- if message['role'] == 'user' %}\n"
            "{{- message['content'] }}\n"
            "{%- elif message['role'] == 'assistant' %}\n"
            '{{- message[\'content\'] + "</s>" }}\n'
            '{%- else %}\n'
            "{{- raise_exception('a message is of the system, the user or the assistant, and the system speaks first') }}\n"
            '{%- endif %}\n'
            '{%- endfor %}\n'
        ),
    },
    "metaspace": {
        "llama2": (
            "{%- if messages[0]['role'] == 'system' %}\n"
            '{%- set system = "<<SYS>>\\n" + messages[0][\'content\'] + "\\n<</SYS>>\\n\\n" %}\n'
            '{%- set turns = messages[1:] %}\n'
            '{%- else %}\n'
            '{%- set system = "" %}\n'
            '{%- set turns = messages %}\n'
            '{%- endif %}\n'
            '{%- for message in turns %}\n'
            "{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}\n"
            "{{- raise_exception('user and assistant take turns, and the user begins') }}\n"
            '{%- endif %}\n'
            "{%- if message['role'] == 'user' %}\n"
            '{{- "<s>[INST] " + ((system if loop.first else \'\') + message[\'content\']) | trim + " [/INST]" }}\n'
            "{%- elif message['role'] == 'assistant' %}\n"
            '{{- " " + message[\'content\'] | trim + " </s>" }}\n'
            '{%- else %}\n'
            "{{- raise_exception('a message is of the system, the user or the assistant, and the system speaks first') }}\n"
            '{%- endif %}\n'
            '{%- endfor %}\n'
        ),
        "mistral": (
            "{%- if messages[0]['role'] == 'system' %}\n"
            '{%- set system = "" + messages[0][\'content\'] + "\\n\\n" %}\n'
            '{%- set turns = messages[1:] %}\n'
            '{%- else %}\n'
            '{%- set system = "" %}\n'
            '{%- set turns = messages %}\n'
            '{%- endif %}\n'
            '{{- "<s>" }}\n'
            '{%- for message in turns %}\n'
            "{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}\n"
            "{{- raise_exception('user and assistant take turns, and the user begins') }}\n"
            '{%- endif %}\n'
            "{%- if message['role'] == 'user' %}\n"
            '{{- "[INST] " + ((system if loop.first else \'\') + message[\'content\']) + " [/INST]" }}\n'
            "{%- elif message['role'] == 'assistant' %}\n"
            '{{- message[\'content\'] + "</s>" }}\n'
            '{%- else %}\n'
            "{{- raise_exception('a message is of the system, the user or the assistant, and the system speaks first') }}\n"
            '{%- endif %}\n'
            '{%- endfor %}\n'
        ),
        "alpaca": (
            "{%- if messages[0]['role'] == 'system' %}\n"
            '{%- set system = "" + messages[0][\'content\'] + "" %}\n'
            '{%- set turns = messages[1:] %}\n'
            '{%- else %}\n'
            '{%- set system = "Below is an instruction that describes a task. Write a response that appropriately completes the request." %}\n'
            '{%- set turns = messages %}\n'
            '{%- endif %}\n'
            '{{- system }}\n'
            '{%- for message in turns %}\n'
            "{%- if message['role'] == 'user' %}\n"
            '{{- "\\n\\n### Instruction:\\n" + message[\'content\'] }}\n'
            "{%- elif message['role'] == 'assistant' %}\n"
            '{{- "\\n\\n### Response:\\n" + message[\'content\'] + "</s>" }}\n'
            '{%- else %}\n'
            "{{- raise_exception('a message is of the system, the user or the assistant, and the system speaks first') }}\n"
            '{%- endif %}\n'
            '{%- endfor %}\n'
            '{%- if add_generation_prompt %}\n'
            '{{- "\\n\\n### Response:\\n" }}\n'
            '{%- endif %}\n'
        ),
        "plain": (
            "{%- if messages[0]['role'] == 'system' %}\n"
            '{%- set system = "" + messages[0][\'content\'] + "" %}\n'
            '{%- set turns = messages[1:] %}\n'
            '{%- else %}\n'
            '{%- set system = "" %}\n'
            '{%- set turns = messages %}\n'
            '{%- endif %}\n'
            '{{- system }}\n'
            '{%- for message in turns %}\n'
            "{%- if message['role'] == 'user' %}\n"
            "{{- message['content'] }}\n"
            "{%- elif message['role'] == 'assistant' %}\n"
            '{{- message[\'content\'] + "</s>" }}\n'
            '{%- else %}\n'
            "{{- raise_exception('a message is of the system, the user or the assistant, and the system speaks first') }}\n"
            '{%- endif %}\n'
            '{%- endfor %}\n'
        ),
    },
}
