"""Where each address goes. One line an address; the views live in their apps."""

from django.urls import URLPattern, URLResolver, path, register_converter
from django.urls.converters import StringConverter

from approvals.api import holds
from approvals.views import (
    always,
    deciding,
    editing,
    function_page,
    insights,
    listings,
    notices,
    plugin_removal,
    policy_tries,
    queue,
    several,
    switches,
    together,
    tool_page,
    waiting_longer,
)
from catalog.api import tokens
from catalog.views import agents, catalog, connections, findings, functions, plugins, policy, secrets, skills
from jobs.api import hooks as incoming
from jobs.views import hooks, routines, starting, trace
from jobs.views import lists as jobs
from studio import pages
from tenants.views import account, audit, joining, people, programs, provider, sign_in, workspaces
from tenants.views import tokens as tokens_of_people


class Plain(StringConverter):
    """A name as the database can hold one: an address with NUL in it is none of ours."""

    regex = r"[^/\0]+"


register_converter(Plain, "plain")

urlpatterns: list[URLPattern | URLResolver] = [
    path("", pages.overview, name="overview"),
    path("rail/", pages.rail, name="rail"),
    path("catalog/sections/", pages.sections, name="sections"),
    path("find/", pages.find, name="find"),
    path("sign-in/", sign_in.sign_in_page, name="sign-in"),
    path("sign-in/link/<str:token>/", sign_in.sign_in_link, name="sign-in-link"),
    path("sign-out/", sign_in.sign_out, name="sign-out"),
    path("jobs/", jobs.jobs, name="jobs"),
    path("jobs/new/", starting.new_job, name="new-job"),
    path("jobs/<str:shown>/", trace.job, name="job"),
    path("jobs/<str:shown>/stop/", trace.stop_job, name="stop-job"),
    path("calls/<str:shown>/", trace.call, name="call"),
    path("routines/", routines.routines, name="routines"),
    path("routines/new/", routines.new_routine, name="new-routine"),
    path("routines/<str:shown>/", routines.routine, name="routine"),
    path("routines/<str:shown>/change/", routines.change_routine, name="change-routine"),
    path("routines/<str:shown>/run/", routines.run_routine, name="run-routine"),
    path("routines/<str:shown>/turn/", routines.turn_routine, name="turn-routine"),
    path("routines/<str:shown>/remove/", routines.remove_routine, name="remove-routine"),
    path("events/", hooks.hooks, name="hooks"),
    path("events/new/", hooks.new_hook, name="new-hook"),
    path("events/<str:shown>/", hooks.hook, name="hook-page"),
    path("events/<str:shown>/change/", hooks.change_hook, name="change-hook"),
    path("events/<str:shown>/turn/", hooks.turn_hook, name="turn-hook"),
    path("events/<str:shown>/secret/", hooks.hook_secret, name="hook-secret"),
    path("events/<str:shown>/remove/", hooks.remove_hook, name="remove-hook"),
    path("hooks/<str:shown>/", incoming.receive, name="hook"),
    path("approvals/", queue.approvals, name="approvals"),
    path("approvals/several/", several.several, name="several"),
    path("approvals/insights/", insights.insights, name="insights"),
    path("approvals/<str:shown>/", queue.hold, name="hold"),
    path("approvals/<str:shown>/group/", together.group, name="group"),
    path("approvals/<str:shown>/edit/", editing.edit_arguments, name="edit-arguments"),
    path("approvals/<str:shown>/always/", always.always_allow, name="always-allow"),
    path("approvals/<str:shown>/extend/", waiting_longer.extend, name="extend"),
    path("approvals/<str:shown>/ask-again/", waiting_longer.ask_again, name="ask-again"),
    path("catalog/", catalog.catalog, name="catalog"),
    path("catalog/plugins/", plugins.plugins_list, name="plugins"),
    path("catalog/upload/", plugins.upload, name="upload-plugin"),
    path("catalog/plugins/<plain:name>/", plugins.plugin, name="plugin"),
    path("catalog/plugins/<plain:name>/take-up/", plugins.take_up, name="take-up-plugin"),
    path("catalog/plugins/<plain:name>/remove/", plugin_removal.remove_plugin, name="remove-plugin"),
    path("catalog/plugins/<plain:name>/delete/", plugin_removal.delete_plugin, name="delete-plugin"),
    path("catalog/tools/", catalog.tools, name="tools"),
    path("catalog/functions/", functions.functions, name="functions"),
    path("catalog/functions/<plain:label>/", function_page.function, name="function"),
    path("catalog/findings/", findings.findings, name="findings"),
    path("catalog/skills/", skills.skills, name="skills"),
    path("catalog/skills/<plain:plugin>/<plain:name>/", skills.skill, name="skill"),
    path("catalog/tools/<plain:slug>/", tool_page.tool, name="tool"),
    path("catalog/tools/<plain:slug>/listings/", catalog.listings, name="listings"),
    path("catalog/tools/<plain:slug>/review/", listings.review, name="review-listing"),
    path("catalog/tools/<plain:slug>/list-again/", catalog.list_again, name="list-again"),
    path("catalog/tools/<plain:slug>/withdraw/", listings.withdraw, name="withdraw-approval"),
    path("catalog/policy/", policy.policy, name="policy"),
    path("catalog/policy/edit/", policy.edit, name="policy-edit"),
    path("catalog/policy/waiting/", policy.waiting, name="policy-waiting"),
    path("catalog/policy/simulate/", policy_tries.simulate, name="policy-simulate"),
    path("catalog/policy/replay/", policy_tries.replay, name="policy-replay"),
    path("catalog/policy/versions/", policy.versions, name="policy-versions"),
    path("catalog/policy/versions/<int:number>/", policy.version, name="policy-version"),
    path("catalog/policy/versions/<int:number>/restore/", policy.restore, name="policy-restore"),
    path("catalog/switches/", switches.switches, name="switches"),
    path("catalog/switches/new/", switches.new_switch, name="new-switch"),
    path("catalog/switches/<str:shown>/", switches.switch, name="switch"),
    path("catalog/switches/<str:shown>/lift/", switches.lift, name="lift-switch"),
    path("catalog/agents/", agents.agents, name="agents"),
    path("catalog/agents/<plain:name>/", agents.agent, name="agent"),
    path("catalog/agents/<plain:name>/request.json", agents.model_request, name="agent-request"),
    path("api/v1/catalog/agents/<plain:name>/tokens", tokens.of_agent, name="api-agent-tokens"),
    path("api/v1/holds", holds.open_holds, name="api-holds"),
    path("settings/deciding/", deciding.deciding, name="deciding"),
    path("api/<path:rest>", programs.nothing, name="api-nothing"),
    path("sign-in/with/", provider.sign_in_with, name="sign-in-with"),
    path("sign-in/with/<plain:provider_id>/return/", provider.come_back, name="openid_connect_callback"),
    path("invitation/<plain:token>/", joining.invitation, name="invitation"),
    path("settings/", people.settings_home, name="settings"),
    path("settings/people/", people.people, name="people"),
    path("settings/people/invite/", people.invite, name="invite"),
    path("settings/people/invitations/<str:shown>/revoke/", people.revoke, name="revoke-invitation"),
    path("settings/people/<str:shown>/", people.member, name="member"),
    path("settings/people/<str:shown>/remove/", people.remove, name="remove-member"),
    path("settings/workspace/", workspaces.switch_workspace, name="switch-workspace"),
    path("settings/you/", account.account, name="account"),
    path("settings/you/unlink/", account.unlink, name="unlink-provider"),
    path("settings/tokens/", tokens_of_people.tokens, name="tokens"),
    path("settings/tokens/new/", tokens_of_people.new_token, name="new-token"),
    path("settings/tokens/<str:shown>/revoke/", tokens_of_people.revoke_token, name="revoke-token"),
    path("settings/secrets/", secrets.secrets, name="secrets"),
    path("settings/secrets/put/", secrets.put_secret, name="put-secret"),
    path("settings/secrets/<str:shown>/remove/", secrets.remove_secret, name="remove-secret"),
    path("settings/audit/", audit.audit, name="audit"),
    path("settings/audit/export/", audit.export, name="audit-export"),
    path("settings/notices/", notices.notices, name="notices"),
    path("settings/notices/new/", notices.new_channel, name="new-channel"),
    path("settings/notices/sent/<str:shown>/again/", notices.again, name="notice-again"),
    path("settings/notices/<str:shown>/", notices.channel, name="channel"),
    path("settings/notices/<str:shown>/test/", notices.test, name="channel-test"),
    path("settings/notices/<str:shown>/secret/", notices.secret, name="channel-secret"),
    path("settings/notices/<str:shown>/turn/", notices.turn, name="channel-turn"),
    path("settings/notices/<str:shown>/remove/", notices.remove, name="channel-remove"),
    path("settings/connections/", connections.connections, name="connections"),
    path("settings/connections/new/", connections.new_connection, name="new-connection"),
    path("settings/connections/<str:shown>/", connections.connection, name="connection"),
    path("settings/connections/<str:shown>/client/", connections.client, name="connection-client"),
    path("settings/connections/<str:shown>/remove/", connections.remove, name="remove-connection"),
    path("settings/connections/<str:shown>/oauth/sign-in/", connections.begin, name="connection-sign-in"),
    path("settings/connections/<str:shown>/oauth/sign-out/", connections.end, name="connection-sign-out"),
    path("settings/connections/<str:shown>/oauth/return/", connections.come_back, name="connection-return"),
]

handler400 = "studio.failures.bad_request"
handler500 = "studio.failures.server_error"
